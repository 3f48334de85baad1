"""Groups the rows of a table by its partition keys, whatever its size: a process that the job's leader starts.

__main__.py   reads piece by piece, has the records sorted, writes the groups, reports its progress
chunks.py     one piece: the records that the table's steps leave, and their keys
keys.py       values of keys as texts, and as bytes in the same order
sorting.py    sorts more than fits into memory, by a library

It reads as a worker does, so that rows and types are those that run() would get. Unlike the rest of this package it
runs where the master does, and needs duckdb and pyarrow there.
"""
