"""Commands on fleets of devices; they need the libraries of `zodiacedge[fleet]`.

usable   refuses addresses and files that cannot be used
keys     `zodiac keys init` and `zodiac keys rotate`
publish  `zodiac publish`
hub      `zodiac hub`
enrol    `zodiac enrol`
agent    `zodiac agent`
"""
