"""Groups the rows of a table by its partition keys, whatever its size: a process that the job's leader starts.

__main__.py   reads piece by piece, hands over to the sorting, writes the groups, tells how far it is
chunks.py     one piece: its records, which of them the table's steps leave, and their keys
keys.py       values of keys as texts, and as bytes that sort like them
sorting.py    sorts more than fits into memory, by a library

It reads as a worker does, so that rows and types are those that run() would get. Unlike the rest of this package it
runs where the master does, and needs duckdb and pyarrow there.
"""
