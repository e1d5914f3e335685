"""Warnings about rules that are sound and look like a mistake.

lints      the warnings about one rule
namesakes  predicates with the same local name
silence    comments that silence warnings
"""
