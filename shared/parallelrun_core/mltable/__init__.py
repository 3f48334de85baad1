"""What an input is: a list of files, or a table, described by an MLTable file or by the same steps in the job itself.

document.py          an MLTable file: its paths and steps, and what may be in it
steps.py             the steps: which there are, and their options
filters.py           the expressions of `filter`, as data
partition_format.py  keys and dates that stand in the files' paths
plan.py              all of this in one record, frozen in the job folder
"""
