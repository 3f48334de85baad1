"""Diagnostics: measurements and stacks of a worker, made by itself.

meter.py          memory, input and waits of each try
prints.py         marks of when, and for which mini-batch, was printed
profiling.py      the user's functions under one of Python's profilers
profile_data.py   a profile as JSON
stacks.py         the stacks of all threads, written when a signal asks for them
"""
