"""The kinds of tables: one module each, named like the kind, with its read step: a class named like the kind, as
`ReadDeltaLake` in `delta_lake`.

A kind also has a module of this name where the master cuts its files (`parallelrun_master.planning.formats`) and where
a worker reads them (`parallelrun_worker.tables.formats`). There is no list of the kinds: adding one is adding these
three modules.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from parallelrun_core.mltable.read_step import ReadStep

_COMPRESSED: Final = (".gz", ".zip", ".bz2", ".xz", ".zst", ".snappy")


@cache
def read_steps() -> dict[str, type[ReadStep]]:
    """The read steps of all kinds, by the names that users write."""
    steps: list[type[ReadStep]] = [
        getattr(import_module(f"{__name__}.{kind}"), f"Read{kind.title().replace('_', '')}")
        for _, kind, _ in iter_modules(__path__)
    ]
    return {step.name(): step for step in steps}


def step_for(path: str) -> str:
    """The name of the step that usually reads files whose names end like this one's; empty for other files."""
    lower = path.lower()
    lower = next((lower.removesuffix(ending) for ending in _COMPRESSED if lower.endswith(ending)), lower)
    return next((name for name, step in read_steps().items() if lower.endswith(step.suffixes)), "")
