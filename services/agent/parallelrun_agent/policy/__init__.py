"""Decisions of a node: events and times in, commands out. Nothing in here does any I/O."""
