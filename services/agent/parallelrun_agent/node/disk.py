"""The agent's answer to a disk that is full, or below its floor: it leases nothing, tries a write now and then, and
goes on after one succeeds.

Mini-batches are not to blame for a full disk: those whose results could not be stored are returned uncharged.
"""

from __future__ import annotations

import os
from pathlib import Path

from parallelrun_core.folder.disk_floor import DiskFloor
from parallelrun_core.service.pacing import Backoff, Every
from parallelrun_core.service.telemetry import logger

log = logger()

_FIRST_PAUSE_S = 0.25
_LONGEST_PAUSE_S = 15.0
_PROBE_BYTES = 1 << 16
_FLOOR_EVERY_S = 1.0


class DiskWatch:
    """The watch over the folder of a job's rows: whether it takes more. Pauses get longer until something could be
    stored again."""

    def __init__(self, folder: Path, probe: str, *, job_id: str, floor: DiskFloor) -> None:
        self.is_full = False
        self._folder = folder
        self._floor = floor
        self._floor_at = Every(_FLOOR_EVERY_S)
        self._probe = folder / f".{probe}.probe"
        self._job_id = job_id
        self._pause = Backoff(_FIRST_PAUSE_S, _LONGEST_PAUSE_S)
        self._probe_at = 0.0

    def failed(self, error: str, now: float) -> None:
        """Something could not be written."""
        if self.is_full:
            return
        self.is_full = True
        pause_s = self._pause.next_s()
        self._probe_at = now + pause_s
        log.error("disk_full", job_id=self._job_id, error=error, pause_s=pause_s)

    def below_floor(self, now: float) -> str:
        """Return, now and then, why nothing more may be taken though it could be stored; empty: it may."""
        if self.is_full or not self._floor_at.is_due(now):
            return ""
        return self._floor.problem(self._folder)

    def stored(self) -> None:
        """Something was written and synced."""
        self._pause.reset()

    def poll(self, now: float) -> bool:
        """Return when a pause is over, try a write; whether there is room again."""
        if not self.is_full or now < self._probe_at:
            return False
        try:
            self._write_probe()
            is_low = bool(self._floor.problem(self._folder))
        except OSError:
            is_low = True
        if is_low:
            self._probe_at = now + self._pause.next_s()
            return False
        self.is_full = False
        log.info("disk_has_room", job_id=self._job_id)
        return True

    def _write_probe(self) -> None:
        """Write a little: the free space is not enough to know, with quotas, reserves and inodes."""
        try:
            with open(self._probe, "wb", buffering=0) as file:
                remaining_bytes = _PROBE_BYTES
                while remaining_bytes:
                    remaining_bytes -= file.write(b"\0" * remaining_bytes)
                os.fsync(file.fileno())
        finally:
            self._probe.unlink(missing_ok=True)
