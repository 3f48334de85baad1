"""Finds out why something doesn't work: from here, of the services, and of a job file.

A subject is a module with `CHECKS`, here or, if nodes check it, too, in `parallelrun_core.checks`. There is no list of
them: adding one is adding a module. `checkup.py` runs all.
"""
