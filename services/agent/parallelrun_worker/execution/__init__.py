"""Runs the entry script: init(), mini-batches first in first out, shutdown().

runner.py              the worker's life with one mini-batch at a time
concurrent_runner.py   with several at a time: run() is awaited, or
deadlines.py           which are canceled alone when they take too long
run_threads.py         called in threads, or
streaming.py           takes them by `enqueue()`
user_script.py         the module of the entry script, and its functions
isolation.py           the items of a mini-batch that fails for good, run apart until the guilty ones are alone
item_errors.py         items that run() itself says have failed
failures.py            errors of the worker itself, and reports of failures to the agent
gpu_memory.py          errors that say that the memory of a GPU has run out
"""
