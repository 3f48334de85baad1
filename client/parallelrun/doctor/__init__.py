"""Finds out why something doesn't work: from here, of the services, and of a job file.

A subject is a module with `CHECKS`; `checkup.py` has the list of them, and runs them. Another subject is one more
module, and its name there.
"""
