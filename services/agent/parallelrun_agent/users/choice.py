"""The choice of the users that a job's workers are, and that its environment is built by."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final, Self

_LARGEST: Final = (1 << 32) - 2
_FEWEST: Final = 4
_JOBS_PER_BUILDER: Final = 8


@dataclass(frozen=True, slots=True)
class Uids:
    """A range of user ids that are nobody else's; each is also the id of a group.

    The last eighth are builders: they install packages, and no job's workers are ever one of them.
    """

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `20000-59999`.

        Raises:
            ValueError: it is no such range, has root's id, or too few ids.
        """
        match = re.fullmatch(r"\s*(\d+)\s*-\s*(\d+)\s*", text)
        if match is None:
            raise ValueError(f"{text!r} is not a range of user ids, such as 20000-59999")
        first, last = int(match[1]), int(match[2])
        if not 0 < first <= last <= _LARGEST:
            raise ValueError(f"{text!r} is not a range of user ids from 1 to {_LARGEST}, the first one first")
        if last - first + 1 < _FEWEST:
            raise ValueError(f"{text!r} is not a range of user ids with at least {_FEWEST} of them")
        return cls(first, last)

    def __contains__(self, uid: int) -> bool:
        return self.first <= uid <= self.last

    @property
    def locked_builder(self) -> int:
        """The uid that installs what is locked by hashes. It never runs code of a package."""
        return self.last - max(2, (self.last - self.first + 1) // _JOBS_PER_BUILDER) + 1

    def of_job(self, job_id: str) -> int:
        """Return the uid of a job: the same on every node, so that files on the shared volume have the same owner.

        Two jobs may have the same one. Nobody can choose a job's id, so nobody can bring that about.
        """
        first_number, second_number = _numbers(job_id)
        uid = self.first + first_number % (self.last - self.first + 1)
        if uid < self.locked_builder:
            return uid
        return self.first + second_number % (self.locked_builder - self.first)

    def builder_of(self, owner: str) -> int:
        """Return the uid that installs what jobs of this owner ask for. Two owners may have the same one."""
        first_builder = self.locked_builder + 1
        return first_builder + _numbers(owner)[0] % (self.last - first_builder + 1)


def _numbers(name: str) -> tuple[int, int]:
    digest = hashlib.sha256(name.encode()).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:16], "big")
