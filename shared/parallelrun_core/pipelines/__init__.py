"""A pipeline's job folder: what was decided about its steps, how they stand, and where their outputs are.

records.py     what a turn of its leader has decided about a step; written once
turns.py       the turns of a loop, as steps
standing.py    how each step stands, from these records and the folders of its jobs
outputs.py     the path of an output, once the step that makes it has completed
finished.py    steps that have completed, found by a fingerprint of what they were made from

All of it can be read at any time by anybody; only masters write.
"""
