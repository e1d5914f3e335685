"""Commands that explain.

questions    questions of commands, and the forms of answers
explain      `zodiac explain`
why_not      `zodiac why-not`
why_changed  `zodiac why-changed`
"""
