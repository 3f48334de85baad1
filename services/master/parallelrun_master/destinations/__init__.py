"""The destinations of ends of jobs, such as webhooks: one module or package each, named like its entries in the outbox.

A module has

    is_wanted(folder, record, generation, tracing)    whether the end of this generation of a job belongs there
    is_served(settings)                               whether a master with these settings delivers what is owed there
    DELIVERY                                          the module that delivers, as a process: `order_of`, `main`

There is no list of the destinations: adding one is adding a module.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from parallelrun_core.layout import outbox_of

if TYPE_CHECKING:
    from parallelrun_core.folder.job_folder import JobFolder
    from parallelrun_core.folder.records import JobRecord
    from parallelrun_core.tracing.switch import Tracing
    from parallelrun_master.settings import MasterSettings


def _modules() -> dict[str, Any]:
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}") for name in names}


def destinations_of(folder: JobFolder, record: JobRecord, generation: int, tracing: Tracing | None) -> list[Path]:
    """The folders of the outbox in which the end of this generation of a job belongs."""
    return [
        outbox_of(folder.root, name)
        for name, module in _modules().items()
        if module.is_wanted(folder, record, generation, tracing)
    ]


def deliveries(settings: MasterSettings) -> dict[Path, str]:
    """The folders of the outbox that a master with these settings delivers, each with the module that does so."""
    return {
        outbox_of(settings.root, name): module.DELIVERY
        for name, module in _modules().items()
        if module.is_served(settings)
    }
