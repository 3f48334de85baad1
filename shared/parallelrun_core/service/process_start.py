"""The first steps of a process of ours: modules of users go last, and structs are prepared for threads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import msgspec


def put_python_path_last() -> None:
    """Move the folders of PYTHONPATH to the end of `sys.path`, but those from which this program itself is imported.

    These folders hold the modules of the user's scripts. One named as a package that we import, such as `redis.py`,
    would otherwise be imported in its place. The environment isn't touched: workers and scripts have PYTHONPATH as it
    was set.
    """
    if not os.environ.get("PYTHONPATH") or sys.flags.ignore_environment:
        return
    folders = {os.path.abspath(entry) for entry in os.environ["PYTHONPATH"].split(os.pathsep)}
    last = [
        entry
        for entry in sys.path
        if os.path.abspath(entry) in folders and not os.path.isdir(os.path.join(entry, "parallelrun_core"))
    ]
    sys.path[:] = [entry for entry in sys.path if entry not in last] + last


def prepare_structs() -> None:
    """Let msgspec look at all structs that are imported by now: some milliseconds for all of a service. Those that are
    imported later need a decoder of their module, which is made while it is imported.

    msgspec makes what it keeps of a struct's type when one is first decoded, and lets others see it before it is
    complete: two threads that decode the first struct of a type at the same time end the process with SIGSEGV (seen
    with 0.22).
    """
    import msgspec

    for struct in {*_below(msgspec.Struct)}:
        msgspec.json.Decoder(struct)


def _below(base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for struct in base.__subclasses__():
        yield struct
        yield from _below(struct)
