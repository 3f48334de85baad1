"""The interface of a source of secrets, such as a folder: those of jobs, of datastores and of webhooks alike.

A source is a module in `secret_sources/`, and nothing else: `secrets_dir`, the one setting that services, nodes and
deliveries pass on, may then be its URL. What else a source needs comes from variables that do not begin with
`PARALLELRUN_`. Deliveries and `parallelrun up` pass these on; a provisioner has none for its nodes, which have what
their image, their volumes or their machine gives them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Final

MAX_BYTES: Final = 64 << 10
"""One more than twice this could not be an environment variable."""
MOST_WAIT_S: Final = 1.0
"""The longest that a source may wait for a network when it is asked: the agent's only thread waits with it."""


class SecretUnusable(Exception):
    """A secret isn't there, or isn't safe; says what to do, and nothing of its content."""


class SecretUnavailable(SecretUnusable):
    """A secret can't be had just now, as its source is away, or wants to be asked less often."""


class SecretSource(ABC):
    """A source of secrets, by names such as `db/password`: one object in each process (`ProcessSecrets`).

    So it may hold a connection, a token that it renews, and values for a time, without a lock of its own: it is made
    and asked by one thread at a time, and by one process only. Nobody closes it in a process that is killed.

    Args:
        place: `secrets_dir` of the service's settings, as operators have written it. Nothing is opened before the
            first question.
    """

    credentials: ClassVar[tuple[str, ...]] = ()
    """Beginnings of the variables that let their owner in, such as `VAULT_TOKEN`: no script is told of these."""

    def __init__(self, place: str) -> None:
        self.place = place

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return the content of a secret, never more than `MAX_BYTES` and one. Waits for `MOST_WAIT_S` at most.

        A source that keeps values goes on with them while it can't ask anew.

        Raises:
            SecretUnavailable: it can't be had just now.
            SecretUnusable: it can't be had.
        """

    @abstractmethod
    def stamp(self, name: str) -> object:
        """Return another value once the secret may have changed, upon which it is read again.

        Waits for nothing, and raises nothing. A source that keeps values for a time has another stamp after that.
        """

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Let go of what is open, as this process ends: give back a token. Raises nothing."""
