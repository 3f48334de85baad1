"""The template of services (`core/service/template.py`), begun: it imports while its owner goes on.

Standard library only, and little of it: `parallelrun run` begins one before it imports what it needs itself, as both
take as long.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import Final, Self

from parallelrun.embedded.guard import option

_PREFIX: Final = "PARALLELRUN_"
_AT_IMPORT: Final = "PARALLELRUN_FAILPOINTS"
"""What modules read when they are imported. All other settings are told to each service."""
_PADDING: Final = "-" * 2048
"""Room for the command lines of services, see `show_as`."""


class BegunTemplate:
    """A template that has no owner yet who orders services of it.

    Args:
        mark: of its cluster, as `NAME=VALUE`.
        channel: this side of its socket.
    """

    def __init__(self, mark: str, process: subprocess.Popen[bytes], channel: socket.socket) -> None:
        self.mark: Final = mark
        self.process: Final = process
        self.channel: Final = channel

    @classmethod
    def begin(cls, mark: str) -> Self:
        """Begin one, which ends with the thread that calls this; what goes wrong is on stderr.

        None of ParallelRun's settings, of which some are secret, is in its environment, which to others is also that of
        its services.

        Raises:
            OSError: it can't be started.
        """
        mark_name, _, mark_value = mark.partition("=")
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(_PREFIX) or name == _AT_IMPORT
        }
        channel, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with end:
            # -P: a file such as `redis.py` in the user's current folder must not be imported.
            program = (sys.executable, *option(mark), "-P", "-m", "parallelrun_core.service.template")
            try:
                process = subprocess.Popen(
                    [*program, str(end.fileno()), str(os.getpid()), _PADDING],
                    cwd="/",
                    env={**inherited, mark_name: mark_value},
                    pass_fds=[end.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                channel.close()
                raise
        return cls(mark, process, channel)

    def close(self) -> None:
        """End it, unless that has been done; its services end with it."""
        self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def new_mark() -> str:
    """A mark for the processes of one cluster."""
    return f"CLUSTER_OF_PARALLELRUN={os.urandom(8).hex()}"
