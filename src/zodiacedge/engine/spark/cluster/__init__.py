"""The Spark session and its jobs.

gateway      the Java process of the driver, ended if an interruption comes while it starts
session      the one session of a process, and its requirements
task_files   files that tasks write, removed if the task fails
task_result  the result of a task: a value and files, or a problem
jobs         starting, watching and cancelling jobs
"""
