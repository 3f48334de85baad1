"""Exceptions that a script may have to catch where it remembers something or asks for a permit."""


class PermitRefused(Exception):
    """Raised where a script asks for a limit that its job doesn't name, or that there is no more, or for more tokens
    than the limit has in a minute.
    """


class MemoryFull(Exception):
    """Raised when a worker process has remembered as much as it may; nothing more is remembered."""
