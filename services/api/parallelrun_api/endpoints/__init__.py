"""Batch endpoints, as clients make, find and invoke them: their answers, and what becomes of a request."""
