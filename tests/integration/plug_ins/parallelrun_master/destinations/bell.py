"""A bell that is rung, in the root folder, for jobs that have the tag `bell`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from parallelrun_core.layout import outbox_of
from parallelrun_master.outbox.delivery import Clock, DeliveryOrder, carry_out, due_end

DELIVERY: Final = __name__


def is_wanted(_: Any, record: Any, *__: Any) -> bool:
    """Return whether a job has the tag."""
    return "bell" in record.spec.get("tags", {})


def is_served(_: Any) -> bool:
    """Every master rings."""
    return True


def order_of(settings: Any, names: list[str], now: float) -> bytes:
    """Return what a master with these settings wants rung."""
    return DeliveryOrder.of(settings, names, now)


def ring(order: DeliveryOrder, secrets: Any) -> None:
    """Ring for each end, as loud as a secret says that no job can have."""
    loudness = secrets.read("parallelrun/bell").decode()
    root, clock = Path(order.root), Clock(order.now)
    for name in order.names:
        with due_end(root, outbox_of(root, "bell"), name, clock) as end:
            if end is not None:
                (root / f"rung.{end.folder.job_id}").write_text(f"{end.result.state} {loudness}")
                end.owed.remove()


def main() -> None:
    """Carry out one order."""
    carry_out(DeliveryOrder, ring)


if __name__ == "__main__":
    main()
