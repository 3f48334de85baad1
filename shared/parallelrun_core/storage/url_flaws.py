"""Flaws of URLs that no job may have: one that names nothing, or that has in it what must not be kept with a job."""

from __future__ import annotations

import re
from typing import Final

from parallelrun_core.storage.schemes import is_container_first, scheme_of
from parallelrun_core.untrusted.addresses import LOCAL_NAMES, Reach, is_literal_of
from parallelrun_core.untrusted.canonical import canonical

_WEB: Final = frozenset({"http", "https"})
_SECRET: Final = re.compile(r"sig|.*(signature|token|credential|secret|password|api-?_?key).*|key")
"""What is called like this in a query lets its owner in."""
_AZURE: Final = re.compile(
    r"[^@.]+|[^@]+@[a-z0-9-]+\.(blob|dfs)\.(core\.windows\.net|fabric\.microsoft\.com)", re.IGNORECASE
)
"""Containers that the library reaches by their URLs alone."""
_OTHER_CLOUD: Final = re.compile(r"[a-z0-9-]+\.(blob|dfs)\.core\.(?!windows\.net)[a-z.]+", re.IGNORECASE)
"""Accounts by their web addresses, in clouds of Azure that the library doesn't know."""
LOOPBACK: Final = LOCAL_NAMES
NO_PASSWORDS: Final = "a URL with a user name or a password in it is not taken: it would be kept with the job"


def flaw_of(url: str) -> str:
    """Return what is wrong with a URL, and what to do; empty if nothing is. No secret is in it."""
    try:
        scheme, host, _, query = canonical(url)
    except ValueError as error:
        return str(error)
    if not host:
        return f"{url[:200]!r} names no {'server' if scheme in _WEB else 'bucket or container'}"
    if "@" in host and not is_container_first(scheme):
        return NO_PASSWORDS
    is_azure = (row := scheme_of(scheme)) is not None and row.protocol == "azure"
    if (is_azure and not _AZURE.fullmatch(host)) or (scheme in _WEB and _OTHER_CLOUD.fullmatch(host)):
        account = host.rpartition("@")[2][:200]
        return (
            f"{account!r} is no account of Azure's public cloud: write abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY;"
            " for another cloud or server, name a datastore with its endpoint (docs/storage.md)"
        )
    return _flaw_on_the_web(url, scheme, host, query) if scheme in _WEB else ""


def _flaw_on_the_web(url: str, scheme: str, host: str, query: str) -> str:
    names = {name.partition("=")[0].lower() for name in query.removeprefix("?").split("&")}
    if any(_SECRET.fullmatch(name) for name in names):
        return (
            f"{url.partition('?')[0][:200]!r} has a signature or a token behind it, which would be kept with the job: "
            "leave it out, and name a datastore, or give the nodes credentials (docs/storage.md)"
        )
    if is_literal_of(host, Reach.MACHINE):
        return f"{url[:200]!r} names an address where only machines themselves have business: nothing is read there"
    if scheme == "http" and LOOPBACK.isdisjoint({host, host.rpartition(":")[0].strip("[]")}):
        return f"{url[:200]!r} would be read unencrypted: http:// is for this machine only, use https://"
    return ""
