"""Sweeps of retention, which prune: a master starts a process for one when that is due, or somebody has asked for it.

All masters of a cluster may do so: the process takes a lock on the volume, and does nothing if another one has it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from parallelrun_core.answers.retention import RuleValue
from parallelrun_core.layout import retention_of
from parallelrun_core.retention.report import last_report
from parallelrun_core.retention.requests import publish_rules, take_request
from parallelrun_core.retention.rules import from_record, to_record
from parallelrun_core.service import telemetry
from parallelrun_core.service.pacing import Every
from parallelrun_core.service.process import die_with_parent

if TYPE_CHECKING:
    from parallelrun_master.settings import MasterSettings

_EVERY_S: Final = 1.0
_FIRST_S: Final = 600.0
"""Seconds after which a root folder that was never swept is swept."""
_OURS: Final = "PARALLELRUN_"
_FAILPOINTS: Final = "PARALLELRUN_FAILPOINTS"


class SweepOrder(msgspec.Struct, kw_only=True, frozen=True):
    root: str
    log_format: str
    rules: dict[str, RuleValue]
    is_urgent: bool


class Sweeping:
    """Starts sweeps over the root folder of a cluster."""

    def __init__(self, settings: MasterSettings) -> None:
        self._settings = settings
        self._root: Final = settings.root
        self._every = Every(_EVERY_S)
        self._process: subprocess.Popen[bytes] | None = None
        self._due_at: float | None = None
        """On the monotonic clock; None: the rules are not published yet."""

    def check(self) -> None:
        """Start a sweep if one is due, and none of this master's works."""
        now = time.monotonic()
        if not self._every.is_due(now) or (self._process is not None and self._process.poll() is None):
            return
        self._process = None
        if self._due_at is None:
            publish_rules(self._root, self._settings)
            self._due_at = now + self._until_due_s()
        is_asked = take_request(self._root)
        if is_asked or now >= self._due_at:
            self._due_at = now + self._period_s
            self._start(is_urgent=is_asked)

    @property
    def _period_s(self) -> float:
        return self._settings.sweep_minutes * 60 or float("inf")

    def _until_due_s(self) -> float:
        """Return in how many seconds the next sweep is due, by when the last one of any master was."""
        last = last_report(self._root)
        due_at = last.at + self._period_s if last is not None else time.time() + _FIRST_S
        return min(max(due_at - time.time(), 0.0), self._period_s) if self._settings.sweep_minutes else self._period_s

    def _start(self, *, is_urgent: bool) -> None:
        order = SweepOrder(
            root=str(self._root),
            log_format=self._settings.log_format,
            rules=to_record(self._settings),
            is_urgent=is_urgent,
        )
        # -P: what is in the current folder must not be imported. Nothing of ours that is secret goes along.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "parallelrun_core.service.launch", "parallelrun_master.sweeping"],
            stdin=subprocess.PIPE,
            env={name: text for name, text in os.environ.items() if name == _FAILPOINTS or not name.startswith(_OURS)},
        )
        if self._process.stdin is not None:
            with suppress(BrokenPipeError), self._process.stdin as stdin:
                stdin.write(msgspec.json.encode(order))


def main() -> None:
    """Sweep as the order on stdin says."""
    from parallelrun_core.retention.sweep import Sweeper  # no master needs it

    die_with_parent()
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=SweepOrder)
    telemetry.configure("master", log_format=order.log_format)
    log = telemetry.logger()
    try:
        report = Sweeper(Path(order.root), from_record(order.rules)).run(is_urgent=order.is_urgent)
    except OSError as error:
        log.warning("sweep_failed", error=str(error), root=str(retention_of(Path(order.root))))
        return
    if report is None:
        return
    if report.problem:
        log.warning("retention_limit_exceeded", reason=report.problem)
    removed = {kind: each.bytes for kind, each in report.removed.items()}
    log.info(
        "swept", removed=removed, noticed=len(report.notices), not_removed=report.not_removed, took_s=report.took_s
    )


if __name__ == "__main__":
    main()
