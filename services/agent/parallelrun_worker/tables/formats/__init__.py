"""Table formats as they are read: a module for each kind, named as in `inputs.json`, with a class named like it, as
`DeltaLakeFormat` in `delta_lake`.

Standard library only when imported, like all of the worker; a kind imports what it needs when it reads.
"""

from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from parallelrun_worker.tables.foreign import HEAD_BYTES, check_kind


def format_of(kind: str) -> Any:
    """The class of a kind of table, a subclass of `TableFormat`.

    Raises:
        ValueError: there is no such kind here.
    """
    if kind not in {module.name for module in iter_modules(__path__)}:
        raise ValueError(f"tables of the kind {kind!r} can't be read by this release of the agent")
    return getattr(import_module(f"{__name__}.{kind}"), f"{kind.title().replace('_', '')}Format")


def read_file(path: str) -> Any:
    """All rows of a file as a DataFrame, in the format that the end of its name says; of any other, as CSV.

    Raises:
        OSError, ValueError, ImportError: it can't be read.
    """
    for module in iter_modules(__path__):
        table_format = format_of(module.name)
        if path.endswith(table_format.suffixes):
            return table_format.read_file(path)
    import pandas as pd

    with open(path, "rb") as file:
        check_kind(file.read(HEAD_BYTES))
    return pd.read_csv(path)


def prepare(kind: str) -> None:
    """Import what reads tables of a kind, with its libraries if they are installed: no mini-batch waits for it then."""
    try:
        names = format_of(kind).imports
    except ValueError:  # which reading such a table raises again
        return
    for name in names:
        with suppress(ImportError):
            import_module(name)
