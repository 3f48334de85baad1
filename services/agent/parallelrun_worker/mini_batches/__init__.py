"""One mini-batch in a worker.

mini_batch.py   from a delivery to the argument of run()
context.py      its optional second argument
copies.py       files that are copied to the node's own disk first
"""
