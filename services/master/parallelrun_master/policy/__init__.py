"""Decisions of a leader: counts and times in, verdicts out. Nothing in here does any I/O."""
