"""The Spark session and its jobs.

gateway      the Java process of the driver, ended if an interruption comes while it starts
runner       the interface between jobs and a session
session      the session: the user's, the running one, or a new one
task_files   files that tasks write, removed if the task fails
task_result  the result of a task: a value and files, or a problem
classic      tasks and names of jobs on a session with its driver in this process
connect      the same on a client of Spark Connect
jobs         starting, watching and cancelling jobs
"""
