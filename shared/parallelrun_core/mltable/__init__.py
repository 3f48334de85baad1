"""Reading of inputs: as a list of files or as a table, by an MLTable file or the same steps in the job itself.

document.py          an MLTable file: its paths and steps
formats/             the kinds of tables, each with its read step; read_step.py is what they have in common
steps.py             the other steps and their options; options.py, conversions.py read them
filters.py           the expressions of `filter`, as data
partition_format.py  keys and dates in the files' paths
plan.py              all of this in one record, frozen in the job folder
input_plan.py        that record
"""
