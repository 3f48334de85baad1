"""Shows where the workers of a job are, when somebody asks: the stacks of their threads.

A worker writes them itself when a signal asks it to (`parallelrun_worker/stacks.py`), into memory that the agent gives
it: so it needs no thread for it.
"""
