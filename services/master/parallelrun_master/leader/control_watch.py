"""The leader's watch over the control of its job: whether it is paused, and its priority, as people have decided."""

from __future__ import annotations

from typing import Final

from parallelrun_core.errors import NewerSchema
from parallelrun_core.folder.control import effective_control
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord
from parallelrun_core.service.pacing import Every
from parallelrun_core.service.telemetry import logger
from parallelrun_core.store.registry import Registry
from parallelrun_core.wire.states import Orders

log = logger()

_COMPARE_S: Final = 5.0


class ControlWatch:
    """The control of one job. Redis is told again what it has forgotten, or was never told: the folder counts."""

    def __init__(self, folder: JobFolder, record: JobRecord, registry: Registry) -> None:
        self._folder = folder
        self._record = record
        self._registry = registry
        self._compares = Every(_COMPARE_S)

    def is_paused(self, now: float) -> bool:
        """Return whether the job is paused. Raises redis-py's errors."""
        orders = self._registry.orders(self._folder.job_id)
        if not self._compares.is_due(now):
            return orders.is_paused
        recorded = self._recorded()
        if recorded is None or recorded == orders:
            return orders.is_paused
        log.info("orders_restored", job_id=self._folder.job_id, paused=recorded.is_paused, priority=recorded.priority)
        self._registry.order(self._folder.job_id, recorded)
        return recorded.is_paused

    def _recorded(self) -> Orders | None:
        """Return the orders in the job's folder; None: they can't be read now."""
        try:
            return effective_control(self._folder, self._record).orders
        except (OSError, NewerSchema):
            return None
