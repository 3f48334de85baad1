"""The memory through which the payloads of deliveries reach a worker: written here, read there, never copied between.

Format and rules: `parallelrun_worker/frames.py`.
"""

from __future__ import annotations

import errno
import os
from fcntl import F_ADD_SEALS, F_SEAL_GROW, F_SEAL_SEAL, F_SEAL_SHRINK, fcntl
from mmap import mmap

from parallelrun_worker import frames


class DeliveryRing:
    """The agent's end. `fd` is what the worker maps.

    Raises:
        OSError: there is no memory for it.
    """

    def __init__(self) -> None:
        self.fd = os.memfd_create("parallelrun-deliveries", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(self.fd, frames.RING_SIZE)
            # A script that cut it would end the agent, by a signal.
            fcntl(self.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
            self._memory = mmap(self.fd, frames.RING_SIZE)
        except OSError:
            os.close(self.fd)
            raise
        self.end = 0
        """Where the next payload may begin."""
        self._needed_from = 0
        """Up to where the worker needed no payload any more when we last asked."""

    def put(self, payload: bytes) -> int:
        """Add a payload; returns its position, or -1 when there is no room for now.

        Raises:
            OSError: something has written into the ring that is not our worker.
        """
        position = self.end
        room = frames.RING_BYTES - position % frames.RING_BYTES
        if len(payload) > room:  # payloads are in one piece
            position += room
        end = position + len(payload)
        if end - self._needed_from > frames.RING_BYTES:
            (needed_from,) = frames.POSITION.unpack_from(self._memory)
            if not self._needed_from <= needed_from <= self.end:
                raise OSError(errno.EFAULT, "something has written over the memory through which deliveries come")
            self._needed_from = needed_from
            if end - needed_from > frames.RING_BYTES:
                return -1
        place = frames.ring_place(position)
        self._memory[place : place + len(payload)] = payload
        self.end = end
        return position

    def get(self, position: int, length: int) -> bytes:
        """A payload that was put there."""
        place = frames.ring_place(position)
        return self._memory[place : place + length]

    def cost_nano(self) -> int:
        """Return the cost that the worker's script has reported, in billionths of a US dollar."""
        (cost,) = frames.COST.unpack_from(self._memory, frames.COST_AT)
        return int(cost)

    def rewind(self, position: int) -> None:
        """Remove all payloads from this position on: the worker has not got, or not read, their tickets."""
        self.end = position

    def close(self) -> None:
        """Free it here; the worker may still have it mapped."""
        self._memory.close()
        os.close(self.fd)
