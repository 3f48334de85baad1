"""The server that a command talks to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from parallelrun.client import Client

Url = Annotated[
    str, typer.Option("--url", help="API URL, for example http://127.0.0.1:8080.", envvar="PARALLELRUN_URL")
]
Token = Annotated[
    str,
    typer.Option(
        "--token", help="API token (prefer PARALLELRUN_TOKEN); not needed with `parallelrun up`.", show_default=False
    ),
]


def connect(url: str, token: str) -> Client:
    """A client of the given server, else of the cluster that `parallelrun up` started.

    Raises:
        ConnectionFailed: there is neither.
    """
    from parallelrun.client import Client

    return Client(url, token)
