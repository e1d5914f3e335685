"""The next version beside the old one, and the differences between them.

ownership     which owners hold a row, before and after
difference    tables before and after a change, compared on demand
changed_rows  rows that an owner gained or lost
stopwatch     thread time of a change, and the deadline of a node
read_view     the tables of both versions while a change is under way
draft         the next version while it is written
net_change    facts that became visible or are visible no more
"""
