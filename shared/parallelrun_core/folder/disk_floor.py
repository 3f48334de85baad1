"""The floor of free space on the volume of the jobs: below it, nothing new is accepted or handed out.

What runs then still has room to be stored, and so have the results and reports of jobs that end.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PART: Final = 50
"""The floor is at most this part of a volume, so that small ones can be used as well."""
_UNITS: Final = ((30, "GiB"), (20, "MiB"), (10, "KiB"))


@dataclass(frozen=True, slots=True)
class DiskFloor:
    """A floor, in bytes; 0: there is none."""

    least_bytes: int

    def least(self, folder: Path) -> int:
        """Return the floor of the volume of a folder, in bytes. Raises OSError."""
        return self._of(os.statvfs(folder))

    def _of(self, volume: os.statvfs_result) -> int:
        return min(self.least_bytes, volume.f_blocks * volume.f_frsize // _PART)

    def problem(self, folder: Path) -> str:
        """Return what is wrong with the volume of a folder, for people; empty: it has room, or doesn't answer."""
        if not self.least_bytes:
            return ""
        try:
            volume = os.statvfs(folder)
        except OSError:
            return ""
        free = volume.f_bavail * volume.f_frsize
        least = self._of(volume)
        if free >= least:
            return ""
        return f"the volume of the cluster has {_words(free)} free, less than the {_words(least)} that are to stay so"


NO_FLOOR: Final = DiskFloor(0)


def _words(size: int) -> str:
    for bits, unit in _UNITS:
        if size >= 1 << bits:
            return f"{size / (1 << bits):.1f} {unit}"
    return f"{size} bytes"
