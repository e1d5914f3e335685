"""The command `zodiac`, one file per command."""
