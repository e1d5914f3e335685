"""Session files: changes to play, with the net changes that they must give.

format  parses session files, and compares results with expectations
play    plays the steps of session files on a knowledge base
"""
