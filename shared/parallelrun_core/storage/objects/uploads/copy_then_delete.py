"""An object that is uploaded under another name, and copied by the store to its own if that is free."""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import Container
from typing import Final

from parallelrun_core.storage.objects.address import Address, address_of
from parallelrun_core.storage.objects.clients import client_of
from parallelrun_core.storage.objects.meters import metered
from parallelrun_core.storage.objects.trouble import Missing, NameTaken, in_plain_words, name_taken
from parallelrun_core.storage.objects.uploads.parts import requests_for

_MARK: Final = ".merging-"
_OWNER: Final = "parallelrun_job"
"""Azure takes only names that could be variables."""
_PART_BYTES: Final = 32 << 20
_AT_ONCE: Final = 2
"""With the part that is being filled, 96 MiB."""


class ObjectBeside:
    """An object on its way under another name, as `interface.NewFile` describes it."""

    def __init__(self, url: str, address: Address, job_id: str) -> None:
        import obstore

        self._url, self._address, self._job_id = url, address, job_id
        self._beside = posixpath.join(_folder(address, job_id), secrets.token_hex(8))
        self._client = client_of(address.store)
        if self._owner_there() not in ("", job_id):
            raise name_taken(url)
        self._file = obstore.open_writer(
            self._client, self._beside, buffer_size=_PART_BYTES, max_concurrency=_AT_ONCE, attributes={_OWNER: job_id}
        )
        self._is_written = False
        self._size = 0

    def __enter__(self) -> ObjectBeside:
        return self

    def __exit__(self, *_: object) -> None:
        # What was not written to its end is no object, and obstore can't abort it: the store drops it by its rule for
        # incomplete uploads, which docs/storage.md asks for.
        if self._is_written:
            remove(f"{self._address.store}/{self._beside}")

    def write(self, data: memoryview) -> None:
        with in_plain_words(self._url):
            self._file.write(bytes(data))
        self._size += len(data)

    def sync(self) -> None:
        self._is_written = True
        with metered(self._url, "put") as call, in_plain_words(self._url):
            self._file.close()
            call.bytes, call.requests = self._size, requests_for(self._size, _PART_BYTES)

    def publish(self, own_hashes: Container[str]) -> None:
        """Copy it to its name. What this job itself has put there earlier is replaced, whatever its content."""
        try:
            self._copy(overwrite=False)
        except NameTaken as error:
            if self._owner_there() != self._job_id:
                raise name_taken(self._url) from error
            self._copy(overwrite=True)

    def _copy(self, *, overwrite: bool) -> None:
        import obstore

        with metered(self._url, "copy"), in_plain_words(self._url):
            obstore.copy(self._client, self._beside, self._address.key, overwrite=overwrite)

    def _owner_there(self) -> str:
        """Return who has made what is there: empty if nothing is, and a word that is no job's if nobody says so."""
        import obstore

        try:
            with metered(self._url, "head"), in_plain_words(self._url):
                head = obstore.get(self._client, self._address.key, options={"head": True})
        except Missing:
            return ""
        return str(head.attributes.get(_OWNER, "somebody"))


def unfinished(address: Address, job_id: str) -> list[str]:
    """Return what is beside a key on its way for this job, or was when its process died."""
    import obstore

    folder = _folder(address, job_id)
    place = f"{address.store}/{folder}"
    with metered(place, "list"), in_plain_words(place):
        pages = obstore.list(client_of(address.store), folder)
        return [f"{address.store}/{each['path']}" for page in pages for each in page]


def replace(url: str, source: Address, target: Address) -> None:
    """Let an object take the place of another one of the same store, in one step; its own name is free then."""
    import obstore

    with metered(url, "copy"), in_plain_words(url):
        obstore.copy(client_of(source.store), source.key, target.key, overwrite=True)
    with metered(url, "delete"), in_plain_words(url):
        obstore.delete(client_of(source.store), source.key)


def remove(url: str) -> None:
    """Remove one of `unfinished`; one that is gone is ignored."""
    import obstore

    address = address_of(url)
    try:
        with metered(url, "delete"), in_plain_words(url):
            obstore.delete(client_of(address.store), address.key)
    except Missing:
        return


def _folder(address: Address, job_id: str) -> str:
    return posixpath.join(posixpath.dirname(address.key), f"{_MARK}{job_id}")
