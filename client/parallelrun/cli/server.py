"""Which server a command speaks to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from parallelrun.client import Client

Url = Annotated[str, typer.Option("--url", help="The API, as in http://127.0.0.1:8080.", envvar="PARALLELRUN_URL")]
Token = Annotated[
    str,
    typer.Option(
        "--token", help="Its token; better in PARALLELRUN_TOKEN. What `up` has started needs none.", show_default=False
    ),
]


def connect(url: str, token: str) -> Client:
    """A client of the server that is named, else of the cluster that `parallelrun up` has started.

    Raises:
        ConnectionFailed: there is neither.
    """
    from parallelrun.client import Client

    return Client(url, token)
