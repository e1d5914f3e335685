"""Tasks to measure, and the clock.

task         a program, its facts and the expected counts
embedded     the embedded engine on encoded facts, and its memory
live         a knowledge base that holds a task
harness      best of several runs, with checked counts
latency      percentiles of many small changes
proofs       proofs of facts, one question at a time
costs        jobs and rows read by one question on Spark
tables       tables in and answers out, beside N-Triples
fingerprint  checksums of the tables of a store
machine      the machine of a run
"""
