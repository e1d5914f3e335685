"""The Spark session and its jobs.

session     one session per process, and what it needs to start
task_files  files that tasks write, and how those of a failed task go
jobs        a job: what tasks return, how they fail, how it is stopped
"""
