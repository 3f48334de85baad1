"""The kinds of triggers: one module each, named like the kind, with its class, a `Trigger`, as `TRIGGER`.

There is no list of the kinds: adding one is adding a module. Documents, the
command line and Azure ML's client have it then.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from parallelrun_core.schedules.trigger_base import Trigger


def kinds() -> list[str]:
    """All kinds, as users write them, in order."""
    return sorted(module.name for module in iter_modules(__path__))


def model_of(kind: str) -> type[Trigger] | None:
    """The triggers of a kind; None: there is no such kind."""
    if kind not in kinds():
        return None
    model: type[Trigger] = import_module(f"{__name__}.{kind}").TRIGGER
    return model
