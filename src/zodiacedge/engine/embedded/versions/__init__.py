"""The next version beside the old one, and what differs between them.

ownership     which owners hold a row, before and after
changed_rows  rows that some owner gained or lost
pair          old and new tables of one owner, compared on demand
unseen        old and new tables of one relation, compared on demand
exchange      a node's old and new segment, counted on demand
clock         thread time of a change, and the deadline of a node
draft         the next version while a change is evaluated
net_change    facts that became visible or are visible no more
"""
