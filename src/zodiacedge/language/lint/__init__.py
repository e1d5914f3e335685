"""Warnings about rules that are sound and look like a mistake.

lints    the warnings
silence  comments that silence warnings
"""
