"""Backup of a root folder, and the check that all of it is whole.

copying.py      a copy that is consistent while the cluster runs, and the way back
verifying.py    reads every log, segment, snapshot and document, and compares what has a checksum
"""
