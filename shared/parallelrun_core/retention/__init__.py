"""Retention and pruning: which jobs, snapshots, uploads and records of a root folder are kept, and how others go.

rules.py        how long and how much is kept: an operator's decision
policy.py       which jobs go, which are noticed before, and what is kept because others refer to it; no I/O
marks.py        the files in a job's folder that say that it is archived, deleted, going, or stripped of its parts
references.py   the jobs, snapshots and uploads that the documents of a root folder name
measuring.py    what a sweep knows of each job, remembered from one sweep to the next
inventory.py    which snapshots, versions of assets, steps for reuse and uploaded files go
trash.py        how something is taken away so that a process may be killed at any step
sweep.py        one sweep over a root folder: mark, notify, rename, check again, remove
requests.py     which rules hold, and who asks for a sweep
report.py       what the last sweep has removed, and what the next one would
sizes.py        the room that a root folder takes, by kind, job and owner
"""
