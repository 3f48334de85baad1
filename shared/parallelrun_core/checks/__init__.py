"""Checks that `parallelrun doctor` makes on its own machine and on each node alike, and previews of data.

bounded.py        runs a check for a bounded time
machine.py        Python, CPUs, memory, limits
kernel.py         what agents ask of the kernel
volume.py         the folder that all services share
disk_need.py      the room that mini-batches need on the disk of a node
stores.py         inputs and outputs in object stores, of a job file alone
data_preview.py   what run() would get of a job's inputs
extent.py         the mini-batches of a job that has not run

A module with `CHECKS` is a subject; there is no list of them.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Final

from parallelrun_core.wire.finding import Check

_FIRST: Final = ("machine", "kernel", "volume")
"""The first subjects of a report; all others follow by name."""


def subjects_in(package: ModuleType) -> dict[str, tuple[Check, ...]]:
    """The checks of each subject in a package, in the order of a report."""
    names = sorted(module.name for module in iter_modules(package.__path__))
    modules = {name: import_module(f"{package.__name__}.{name}") for name in sorted(names, key=(*_FIRST, *names).index)}
    return {name: module.CHECKS for name, module in modules.items() if hasattr(module, "CHECKS")}
