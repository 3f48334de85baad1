"""Table formats as they are read: a module for each kind, named as in `inputs.json`, with a class named like it, as
`DeltaLakeFormat` in `delta_lake`.

Standard library only when imported, like all of the worker; a kind imports what it needs when it reads.
"""

from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from typing import Any


def format_of(kind: str) -> Any:
    """The class of a kind of table, a subclass of `TableFormat`.

    Raises:
        ValueError: there is no such kind here.
    """
    if kind not in {module.name for module in iter_modules(__path__)}:
        raise ValueError(f"tables of the kind {kind!r} can't be read by this release of the agent")
    return getattr(import_module(f"{__name__}.{kind}"), f"{kind.title().replace('_', '')}Format")


def prepare(kind: str) -> None:
    """Import what reads tables of a kind, with its libraries if they are installed: no mini-batch waits for it then."""
    try:
        names = format_of(kind).imports
    except ValueError:  # which reading such a table raises again
        return
    for name in names:
        with suppress(ImportError):
            import_module(name)
