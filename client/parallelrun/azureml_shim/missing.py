"""What v1's classes have and ours have not: an error that says so, wherever a script asks for it."""

from __future__ import annotations

from typing import Any


class ToldAsMissing:
    """A class of v1, with those of its members that public samples use."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        message = f"{type(self).__name__}.{name} has no counterpart in ParallelRun (see docs/from-azure-ml.md)"
        raise AttributeError(message)
