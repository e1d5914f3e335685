"""`zodiac pack`: makes, shows and compares packs, and installs them in stores.

pack     the group of commands
build    `zodiac pack build`
show     `zodiac pack show`
diff     `zodiac pack diff`
install  `zodiac pack install` and `zodiac pack remove`
listed   `zodiac pack list`
"""
