"""ParallelRun as operators install it, whole: its own services on an engine, and nodes of the same engine.

    install.py   what a test asks of an installation, whichever engine it is on
    chart.py     the Helm chart, with Helm's own code, on Kubernetes
    helm.py      Helm, where its package is installed
    names.py     the names of services, for a cluster that has no DNS
    stack.py     the stack on a Docker Swarm
    tls.py       certificates for an engine, and its socket behind them

`make engine-test E=kubernetes` and `E=swarm` begin with it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Final

_MODULES: Final = {"kubernetes": "chart", "swarm": "stack"}


def installation(engine: str) -> Callable[[], AbstractContextManager[Any]] | None:
    """What installs all of it on an engine of this name, and removes it again; None: there is no such thing."""
    if engine not in _MODULES:
        return None
    made: Callable[[], AbstractContextManager[Any]] = import_module(f"{__name__}.{_MODULES[engine]}").installed
    return made
