"""Objects that only mark a folder: empty ones, by whose names alone nobody can tell them from empty files.

Drivers of Hadoop and Azure make an empty object `in` for a folder `in/`, older ones `in_$folder$`. What a store's
console makes ends in a slash, and the listing leaves it out in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from parallelrun_core.errors import InvalidInput
from parallelrun_core.storage.interface import Version
from parallelrun_core.storage.objects.address import Address
from parallelrun_core.storage.objects.clients import client_of
from parallelrun_core.storage.objects.meters import metered
from parallelrun_core.storage.objects.trouble import AccessDenied, in_plain_words

if TYPE_CHECKING:
    from obstore import ObjectMeta

_ASKED_AT_ONCE: Final = 32
_OF_HADOOP: Final = "_$folder$"
_BEHIND_SLASH: Final = "0"
"""The character after `/`: every key below a folder comes before the folder's name with this one behind it."""


def has_keys_below(url: str, address: Address) -> bool:
    """Return whether the store has keys below this one.

    Raises:
        StoreError: it can't be asked, or is no store.
    """
    import obstore

    with metered(url, "list"), in_plain_words(url):
        pages = obstore.list(client_of(address.store), f"{address.key}/", chunk_size=1)
        return any(meta["path"] != address.key for meta in next(iter(pages), ()))


def is_marker(url: str, address: Address, version: Version) -> bool:
    """Return whether an object only marks the folder of this name.

    Raises:
        InvalidInput: there is such a folder, and the object has content: either may be meant.
        StoreError: the store can't be asked, or is no store.
    """
    try:
        if not has_keys_below(url, address):
            return False
    except AccessDenied:
        return False  # whoever may not list can only mean the object
    if not version.size_bytes:
        return True
    folder, _, name = url.rpartition("/")
    message = f"{url} is an object of {version.size_bytes:,} bytes, and also a folder with others in it"
    raise InvalidInput(
        f"{message}: write {url}/ for the folder, or the pattern {folder}/[{name[0]}]{name[1:]} for the object"
    )


def markers_in(store: str, page: Sequence[ObjectMeta], empty: Sequence[str], *, is_sorted: bool) -> set[str]:
    """Return which of the empty objects of a page mark folders.

    Args:
        empty: their keys.
        is_sorted: the store lists in the order of keys, so the page says of most what is below them.
    """
    above = {key[:at] for meta in page for key in [meta["path"]] for at in _slashes(key)}
    last = page[-1]["path"]
    marker_keys = {key for key in empty if key.endswith(_OF_HADOOP) or key in above}
    unknown = [key for key in empty if key not in marker_keys and not (is_sorted and last >= key + _BEHIND_SLASH)]
    if unknown:
        with ThreadPoolExecutor(min(_ASKED_AT_ONCE, len(unknown)), "markers") as pool:
            answers = pool.map(lambda key: has_keys_below(f"{store}/{key}", Address(store, key)), unknown)
            marker_keys |= {key for key, is_above in zip(unknown, answers, strict=True) if is_above}
    return marker_keys


def _slashes(key: str) -> list[int]:
    return [at for at, character in enumerate(key) if character == "/"]
