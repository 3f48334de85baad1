"""The check that a URL of a store is among those that jobs may use."""

from __future__ import annotations

from collections.abc import Iterable

from parallelrun_core.datastores import registry as datastore_registry
from parallelrun_core.errors import NotFound, UnsafePath
from parallelrun_core.storage.interface import PathProblem
from parallelrun_core.storage.location import datastore_of
from parallelrun_core.storage.objects.address import address_of
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.schemes import schemes_like

_AS = "s3://bucket/prefix"
_CLOUDS = (".core.windows.net", ".core.chinacloudapi.cn", ".core.usgovcloudapi.net")
"""Azure's own, as the names of their servers end."""


def refusal(url: str, rule: PathRule) -> PathProblem | None:
    """Why a URL may not be used; None if it may.

    Raises:
        ValueError: it is no URL of an object.
    """
    if name := datastore_of(url):
        return _of_datastore(name, url, rule)
    if is_below(url, rule.urls):
        return None
    hint = f"allowed_roots: {':'.join(rule.urls)}" if rule.urls else _HOW
    return PathProblem(f"{url[:200]!r} is outside of the places that jobs may use", hint)


_HOW = f"PARALLELRUN_ALLOWED_ROOTS of the API has no URL: add one there, such as {_AS}"


def _of_datastore(name: str, url: str, rule: PathRule) -> PathProblem | None:
    """Return the trouble with a path in a datastore: what it stands for counts."""
    catalog = datastore_registry.catalog()
    if catalog is None:
        return PathProblem(f"{url[:200]!r}: no datastores are known here", "submit the job to a cluster that has them")
    try:
        datastore = catalog.get(name)
    except NotFound:
        return PathProblem(f"there is no datastore {name!r}", catalog.hint(name))
    place = f"{datastore.root}/{address_of(url).key}"
    if is_below(place, rule.urls):
        return None
    message = f"{url[:200]!r} stands for {place[:200]!r}, which is outside of the places that jobs may use"
    return PathProblem(message, f"allowed_roots: {':'.join(rule.urls)}" if rule.urls else _HOW)


def is_below(url: str, roots: Iterable[str]) -> bool:
    """Return whether an object or prefix is one of these URLs, or below one. `s3://` alone stands for every bucket,
    `abfss://` for every account of Azure's clouds: what goes to a server of another name is credentials, too.

    Raises:
        ValueError: it is no URL of an object.
    """
    address = address_of(url)
    for root in roots:
        scheme, _, rest = root.partition("://")
        if not rest.strip("/"):
            if address.store.partition("://")[0] in schemes_like(scheme) and _is_of_a_cloud(address.store):
                return True
            continue
        allowed = address_of(root)
        if address.store == allowed.store and f"{address.key}/".startswith(allowed.key and f"{allowed.key}/"):
            return True
    return False


def _is_of_a_cloud(store: str) -> bool:
    _, at, server = store.partition("@")
    return not at or "." not in server or server.endswith(_CLOUDS)


def check(url: str, rule: PathRule | None) -> None:
    """Make sure that a URL may be used.

    Raises:
        UnsafePath: it may not.
    """
    if rule is not None and (trouble := refusal(url, rule)) is not None:
        raise UnsafePath.at("", *trouble)
