"""The server that is used where a user names none."""

from __future__ import annotations

import os

from parallelrun.errors import ConnectionFailed


def server_to_use(url: str = "", token: str = "") -> tuple[str, str]:
    """The URL and token of a server: what is given, else the environment's, else of the cluster in the background.

    Raises:
        ConnectionFailed: there is none of these.
    """
    url = url or os.environ.get("PARALLELRUN_URL", "")
    if url:
        return url, token or os.environ.get("PARALLELRUN_TOKEN", "")
    from parallelrun.background.state import running

    cluster = running()
    if cluster is None:
        raise ConnectionFailed(
            "No server given: pass its URL, set PARALLELRUN_URL, or start one with `parallelrun up`."
        )
    return cluster.url, token or cluster.token
