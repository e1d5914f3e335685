"""What is measured, and how.

task         a program, its facts and the counts that must come out
embedded     the embedded engine on encoded facts, and its memory
live         a knowledge base that holds a task
harness      best of several runs, counts checked
latency      percentiles of many small changes
fingerprint  what a store holds, in comparable numbers
machine      the machine it ran on
"""
