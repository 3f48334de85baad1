"""Publishing: inputs become mini-batches on the queue.

scheduling.py   lists and cuts the inputs into the manifest
sizing.py       the size of mini-batches, while the job chooses it itself
publisher.py    from the manifest to the queue, within bounds
handover.py     what goes from the one to the other in memory
"""
