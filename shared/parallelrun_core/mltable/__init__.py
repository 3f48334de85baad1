"""How an input is read: as a list of files or as a table, by an MLTable file or the same steps in the job itself.

document.py          an MLTable file: its paths and steps
steps.py             the steps and their options
filters.py           the expressions of `filter`, as data
partition_format.py  keys and dates in the files' paths
plan.py              all of this in one record, frozen in the job folder
"""
