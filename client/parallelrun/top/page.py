"""The address of a job's page, and opening it."""

from __future__ import annotations

import os
import webbrowser
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from parallelrun.errors import ApiError

if TYPE_CHECKING:
    from parallelrun.client import Client

_DISPLAYS: Final = ("DISPLAY", "WAYLAND_DISPLAY")


def address_of(server: str, job_id: str) -> str:
    """The permanent address of a job's page; whoever opens it signs in there."""
    return f"{server}/jobs/{quote(job_id, safe='')}"


def sign_in_address(client: Client, job_id: str = "") -> str:
    """Return the address of a job's page, or of all jobs, with a code that signs in one browser, once: nobody copies
    tokens around.

    It is in the part of the address that browsers send to nobody. A server that makes no codes asks for the token.
    """
    address = address_of(client.url, job_id) if job_id else f"{client.url}/"
    try:
        code = client.sign_in_code()
    except ApiError:
        return address
    return f"{address}#code={quote(code, safe='')}"


def open_in_browser(address: str) -> bool:
    """Return whether a browser was there to be told; one that would take over the terminal doesn't count."""
    # Python would start a browser for terminals where there is no display, and wait for its end.
    if not any(os.environ.get(name) for name in (*_DISPLAYS, "BROWSER")):
        return False
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False
