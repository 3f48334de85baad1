"""The client's parts that need no server."""
