"""A shell command in place of an entry script: the job's one mini-batch is to run it.

runner.py     the worker of such a job
place.py      the folder that it runs in: a copy of the code
shell.py      the process: started, waited for, and ended with all that it leaves behind
for_python/   what Python programs of it find when they start
"""
