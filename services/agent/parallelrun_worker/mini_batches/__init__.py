"""Mini-batches in a worker: their data become arguments of run().

mini_batch.py   from a delivery to the arguments of run()
copies.py       files that are copied to the node's own disk first
"""
