"""The resources of a server, a module for each: jobs, their outputs and logs, assets, computes, schedules, and others.

`client.py` at the root has one object of each. `resource.py` has what all of them need, `names.py` resolves the names
in job files by a server, and `watch.py` follows a job to its end on a display.
"""
