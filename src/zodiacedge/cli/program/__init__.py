"""Commands on rule files: nothing outlives them.

check     `zodiac check`
plan      `zodiac plan`
graph     `zodiac graph`
sessions  session files of `zodiac run --apply`
run       `zodiac run`
generate  `zodiac generate`
"""
