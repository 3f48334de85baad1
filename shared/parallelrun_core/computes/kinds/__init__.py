"""The kinds of computes: one module each, named like the kind, with the fields of its engine: a class
named like the kind, as `DockerCompute` in `docker`.

A kind whose nodes the provisioner starts also has a module or a package of this name in
`parallelrun_provisioner.engines`. There is no list of the kinds: adding one is adding these two.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from parallelrun_core.computes.definition import Compute  # the names alone are read by processes without pydantic

MANUAL: Final = "manual"
"""The kind whose nodes people start."""


def kinds() -> list[str]:
    """All kinds, as users write them, in order."""
    return sorted(module.name for module in iter_modules(__path__))


def model_of(kind: str) -> type[Compute]:
    """The definition of the computes of one of `kinds()`."""
    model: type[Compute] = getattr(import_module(f"{__name__}.{kind}"), f"{kind.title()}Compute")
    return model
