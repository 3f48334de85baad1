"""What can be wrong with a job, a module for each subject, named in `all.py`."""
