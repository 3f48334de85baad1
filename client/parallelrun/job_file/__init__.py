"""Job files of a user: read and checked before a job is run here or sent.

`reading.py` reads a file in any spelling, `positions.py` says where in it a field is, `plan.py` counts what a job would
do, and `replay.py` makes the job of one mini-batch of an earlier job.
"""
