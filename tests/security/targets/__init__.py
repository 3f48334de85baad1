"""What attacks are played against: a module for each, found by presence, with `reach()`."""

from __future__ import annotations

import pkgutil
from contextlib import AbstractContextManager
from importlib import import_module

from tests.security.target import HttpTarget


def names() -> list[str]:
    """All targets."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def reach(name: str) -> AbstractContextManager[HttpTarget]:
    """Start this target when entered, and stop it at the end.

    Raises, when entered:
        Missing: it can't be had here.
    """
    made: AbstractContextManager[HttpTarget] = import_module(f"{__name__}.{name}").reach()
    return made
