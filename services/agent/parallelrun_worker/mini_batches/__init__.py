"""One mini-batch in a worker.

mini_batch.py   from a delivery to the arguments of run()
copies.py       files that are copied to the node's own disk first
"""
