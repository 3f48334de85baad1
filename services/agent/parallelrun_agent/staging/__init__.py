"""Brings what is in object stores to the node, before a worker needs it.

cache.py      what was fetched once: on the node's disk, bounded, shared by jobs, tries and agents
fetching.py   one object, in exactly the version that was listed
"""
