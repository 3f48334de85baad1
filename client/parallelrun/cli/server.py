"""The server that a command talks to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from parallelrun.client import Client

_Resource = TypeVar("_Resource")

Url = Annotated[
    str, typer.Option("--url", help="API URL, for example http://127.0.0.1:8080.", envvar="PARALLELRUN_URL")
]
Token = Annotated[
    str,
    typer.Option(
        "--token", help="API token (prefer PARALLELRUN_TOKEN); not needed with `parallelrun up`.", show_default=False
    ),
]
Local = Annotated[bool, typer.Option("--local", help="Those of `parallelrun run`, also when there is a server.")]


def connect(url: str, token: str) -> Client:
    """A client of the given server, else of the cluster that `parallelrun up` started.

    Raises:
        ConnectionFailed: there is neither.
    """
    from parallelrun.client import Client

    return Client(url, token)


@contextmanager
def local_or_remote(
    url: str, token: str, *, local: bool, here: Callable[[], _Resource], remote: Callable[[Client], _Resource]
) -> Iterator[tuple[_Resource, str]]:
    """A resource of the given server or of the one that runs, else of this machine; and where it is, in words.

    Args:
        local: that of this machine, also when there is a server.
    """
    from parallelrun.client import Client, server_to_use
    from parallelrun.errors import ConnectionFailed

    where = "for `parallelrun run` on this machine"
    if not local:
        try:
            url, token = server_to_use(url, token)
        except ConnectionFailed:
            where += ", since no server is given or running"
        else:
            with Client(url, token) as client:
                yield remote(client), f"on the server {client.url}"
            return
    yield here(), where
