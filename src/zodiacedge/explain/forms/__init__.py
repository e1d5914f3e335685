"""Explanations for people and machines.

explanation  the forms that every answer has, as methods
words        phrases for steps, premises, failing conditions and edits
lines        an outline: lines with levels, and numbers for parts that are shown once and named again
proofs       the outline of a proof
missing      the outline of an answer to "why not"
history      the outline of an answer to "since when"
outlines     the outline of any answer
text         a tree of lines, plain or in colours
markdown     nested lists, to paste into a ticket
page         nested lists that fold: a page of its own, and a part of a notebook; its files are in `web/`
document     JSON
cards        the boxes and arrows of a picture
svg          the picture
"""
