"""The imports of entry scripts; `for_users` and `parallelrun` have them under the names that scripts use.

entry_script.py   `EntryScript`: logger and folders, and the worker's settings as scripts see them
script.py         functions: remember and recall, limits, costs, failed items, broken workers
metrics.py        `log_metric`
memory.py         what `remember` keeps
permits.py        what `limit` waits for
refusals.py       exceptions of both
costs.py          what `report_cost` adds up
"""
