"""Shows where the workers of a job are, when somebody asks: the stacks of their threads.

A worker writes them itself when a signal asks it to (`worker/diagnostics/stacks.py`), into memory that the agent gives
it: so it needs no thread for it.
"""
