"""The Spark session and its jobs.

session      one session per process, and what it needs to start
task_files   files that tasks write, and how those of a failed task go
task_result  how a task answers the driver: a value, or a problem
jobs         jobs: started, watched and cancelled
"""
