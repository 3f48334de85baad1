"""Findings: the problems that a job can have, a module for each subject, named in `all.py`."""
