"""Schedules: when jobs are due, and which were made. `policy.py` decides; `store.py` keeps; a master fires."""
