"""The choice of the user that a job's workers are."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Self

_LARGEST: Final = (1 << 32) - 2


@dataclass(frozen=True, slots=True)
class Uids:
    """A range of user ids that are nobody else's; each is also the id of a group."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `20000-59999`.

        Raises:
            ValueError: it is no such range, or has root's id.
        """
        match = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", text)
        if match is None:
            raise ValueError(f"{text!r} is not a range of user ids, such as 20000-59999")
        first, last = int(match[1]), int(match[2])
        if not 0 < first <= last <= _LARGEST:
            raise ValueError(f"{text!r} is not a range of user ids from 1 to {_LARGEST}, the first one first")
        return cls(first, last)

    def __contains__(self, uid: int) -> bool:
        return self.first <= uid <= self.last

    def of_job(self, job_id: str) -> int:
        """Return the uid of a job: the same on every node, so that files on the shared volume have the same owner.

        Two jobs may have the same one. Nobody can choose a job's id, so nobody can bring that about.
        """
        digest = hashlib.sha256(job_id.encode()).digest()
        return self.first + int.from_bytes(digest[:8], "big") % (self.last - self.first + 1)
