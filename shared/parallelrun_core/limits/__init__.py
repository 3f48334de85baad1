"""Limits of a cluster: how often, and how many at a time, its jobs may call a service that somebody else runs."""
