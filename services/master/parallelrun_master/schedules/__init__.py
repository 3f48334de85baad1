"""Makes the jobs of schedules when they are due. Every master does: who first writes down what becomes of a time wins.

`core/schedules` knows when something is due, what becomes of it (`policy.py`), and how that is kept (`store.py`).
"""
