"""The REST front door: submit, follow, fetch."""
