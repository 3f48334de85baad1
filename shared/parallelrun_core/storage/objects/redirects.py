"""Redirects of object stores: their library follows each of them, wherever it leads, and has no option against it.

So it is told to reach every host but the store's own by a proxy that can't be reached.
"""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from obstore.store import ClientConfig

_NOWHERE: Final = "127.0.0.1:0"
"""Nothing can listen on this port."""
LED_AWAY: Final = "the store redirects to another server, which is not followed: name the store where the object is"


def staying_at(url: str, options: ClientConfig, *others: str) -> ClientConfig:
    """Options of a client that reaches only the server of a URL. Where a proxy of the environment is asked for that
    server, the options are as they were: the proxy knows where it leads nobody.

    Args:
        others: hosts that the library asks for credentials.
    """
    server, proxies = urlsplit(url), urllib.request.getproxies()
    host = server.hostname or ""
    if not host or ((proxies.get(server.scheme) or proxies.get("all")) and not urllib.request.proxy_bypass(host)):
        return options
    return {**options, "proxy_url": f"http://{_NOWHERE}", "proxy_excludes": ",".join((host, *others))}


def is_led_away(text: str) -> bool:
    """Return whether a client that stays at its server has failed since it was sent to another one."""
    return f"{_NOWHERE}," in text
