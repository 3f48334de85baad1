"""Kinds of starters, each a folder of this package: its `KIND` says what a command needs to know, and all of its other
files are what is written, with `{name}`, `{where}` and `{step}` filled in where the job file has them.
"""

from __future__ import annotations

from pkgutil import iter_modules


def kind_names() -> list[str]:
    """The names of all kinds, as the command line has them."""
    return sorted(module.name.replace("_", "-") for module in iter_modules(__path__))
