"""Table formats as they are cut: a module for each kind, named as in `parallelrun_core.mltable.formats`, with a
class named like the kind, as `DeltaLakeCutting` in `delta_lake`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from parallelrun_core.errors import InvalidInput
from parallelrun_master.planning.table_format import TableCutting


@cache  # it is asked for each mini-batch
def format_of(kind: str) -> type[TableCutting]:
    """The class of a kind of table.

    Raises:
        InvalidInput: there is no such kind here.
    """
    if kind not in {module.name for module in iter_modules(__path__)}:
        raise InvalidInput(f"tables of the kind {kind!r} can't be cut by this release")
    cutting: type[TableCutting] = getattr(
        import_module(f"{__name__}.{kind}"), f"{kind.title().replace('_', '')}Cutting"
    )
    return cutting
