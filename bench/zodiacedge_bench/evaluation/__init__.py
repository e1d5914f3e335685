"""Committed results: the page `docs/evaluation.md` made from them, and a new run beside them.

baseline   results without the times of single runs, as JSON files of the repository
markdown   tables and numbers
published  what the paper prints
sections   sections of the page without counterpart in the paper
page       the page, section by section
accept     new results become the committed ones
compare    a new run beside the committed results, as ratios to a peer of the same run
"""
