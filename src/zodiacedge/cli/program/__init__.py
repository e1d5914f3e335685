"""Commands on rule files; their results are in memory.

check  `zodiac check`
fmt    `zodiac fmt`
plan   `zodiac plan`
graph  `zodiac graph`
run    `zodiac run`
"""
