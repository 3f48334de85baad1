"""Webhooks: requests that tell a URL that a job has ended (`notify` in its spec). One of them is a notice.

A notice is in the outbox (`parallelrun_master.outbox`) from the moment before the end of its job is recorded until
somebody has accepted it, or it is given up. What it says is derived from the recorded end (`message`). A process sends
those that are due (`delivery`, `sending`), and can be as slow as it likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from parallelrun_core.folder.records import JobRecord

DELIVERY: Final = "parallelrun_master.destinations.notices.delivery"


def is_wanted(_: Any, record: JobRecord, *__: Any) -> bool:
    """Return whether a job names a URL."""
    return bool(record.spec.get("notify"))


def is_served(_: Any) -> bool:
    """Every master sends them."""
    return True
