"""Decisions, without any I/O: how many nodes a compute needs, and which of them go."""
