"""The engines: a module for each, found by presence, with `reach()`."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from tests.engines.target import Target


def names() -> list[str]:
    """All engines."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def reach(name: str) -> Target:
    """The engine of this name, to be entered."""
    made: Target = import_module(f"{__name__}.{name}").reach()
    return made
