"""The formats of rows, in part files and in the output: one module each, named like the format, with its `FORMAT`.

A format also has a module of this name where workers write its rows (`parallelrun_worker.rows.formats`), and one where
they are put together (`parallelrun_concatenator.formats`), unless that is copying them one after the other. There is no
list of the formats: adding one is adding these modules.
"""

from __future__ import annotations

import posixpath
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple


class RowFormat(NamedTuple):
    """A format of rows, as all services know it."""

    suffixes: tuple[str, ...]
    """The ends of names of output files that have it, in lower case; none: all other files have it."""
    options: tuple[str, ...] = ()
    """Fields of a job that say how its rows are written: they are unused with another format."""


@cache
def row_formats() -> dict[str, RowFormat]:
    """All formats, by name."""
    return {name: import_module(f"{__name__}.{name}").FORMAT for _, name, _ in iter_modules(__path__)}


def row_format(output: str) -> str:
    """The name of the format of an output file, which is a path or a URL."""
    suffix = posixpath.splitext(output)[1].lower()
    return next((name for name, each in row_formats().items() if suffix in each.suffixes), "text")
