"""The command `zodiac`, one file per command.

app       the group, exit codes, and how errors are shown
console   what goes to standard output and standard error: text, tables, JSON, progress
programs  rule files in, programs with findings out
output    files that commands write
check · run · graph · demo      the commands
"""

from zodiacedge.cli.app import main

__all__ = ["main"]
