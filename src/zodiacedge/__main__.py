"""`python -m zodiacedge` is the command `zodiac`."""

from zodiacedge.cli import main

main()
