"""The only code of ours inside the user's process: it runs the entry script, mini-batch by mini-batch.

Standard library only, and little of it: an entry script's own `queue.py` or `logging_utils.py` must be its own.
"""
