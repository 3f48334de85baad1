"""Batch endpoints: named jobs over data that whoever calls them gives (reference §3.9)."""
