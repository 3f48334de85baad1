"""Brings what is in object stores to the node, before a worker needs it.

staging.py        what the job machine asks for, and what it is told
mini_batches.py   from a message to what is to be staged for it
job_stage.py      all that one job stages on one node
tree.py           where in a job's tree each object is
place.py          where a node stages: one cache for all jobs, a tree for each of them
side_inputs.py    inputs that every worker needs whole, such as a model
staged.py         what a mini-batch needs, and how bringing it here has ended
failures.py       why a mini-batch can't have its files
stager.py         fetches the files of mini-batches, as there is room for them
cache.py          what was fetched once: on the node's disk, bounded, shared by jobs, tries and agents
room.py           how much of the disk that takes, and what goes when something else needs the room
shards.py         the folders that its files are spread over
new_object.py     a file of it that is being filled
crash_recovery.py what of it a crash of the machine may have left without its content
fetching.py       one object, or a part of it, in exactly the version that was listed
parts.py          which parts of a table's file a mini-batch needs
partial_file.py   a part that ends only where the record does
"""
