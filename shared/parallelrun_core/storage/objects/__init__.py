"""Objects of S3, Google Cloud Storage and Azure Storage, and single files of web servers.

    address.py      which object of which store a URL names
    allowed.py      which URLs jobs may use
    clients.py      clients of stores, with the credentials that this machine has
    endpoints.py    whether what answers at an endpoint is a store
    redirects.py    keeps clients at their own server
    environment.py  what this machine has, where the library doesn't look by itself
    datastores.py   clients with the credentials that a datastore names
    listing.py      the objects below a prefix, page by page
    parallel_listing.py   large folders of a store at the same time
    markers.py      objects that only mark a folder
    copying.py      an object that is copied to a local file
    reading.py      an object that is read in ranges
    web.py          a file of a web server
    read_ahead.py   the same for small reads that follow each other
    uploads/        new objects
    meters.py       what this process has asked of stores, and how long it took
    trouble.py      what a store answers, as the errors that files have

Nothing is imported, and no store is asked, before it is needed: most clusters have no object store. obstore does not
survive a fork; `clients.py` refuses instead of hanging.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from typing import BinaryIO, cast

from parallelrun_core.storage.interface import NewFile, PathProblem, Version
from parallelrun_core.storage.objects import uploads
from parallelrun_core.storage.objects.address import address_of, split
from parallelrun_core.storage.objects.allowed import check, refusal
from parallelrun_core.storage.objects.clients import client_of
from parallelrun_core.storage.objects.copying import copy, whole
from parallelrun_core.storage.objects.listing import ObjectListing, single
from parallelrun_core.storage.objects.meters import metered
from parallelrun_core.storage.objects.read_ahead import StreamedObject
from parallelrun_core.storage.objects.reading import ObjectFile
from parallelrun_core.storage.objects.trouble import Missing, in_plain_words
from parallelrun_core.storage.path_rule import PathRule


class ObjectStorage:
    """The storage of objects, as `interface.Storage` describes it."""

    is_near = False

    def place_trouble(
        self, path: str, rule: PathRule, *, pattern: Sequence[str] | None = None, is_written: bool = False
    ) -> PathProblem | None:
        try:
            return refusal(path if pattern is not None else split(path)[0], rule)
        except ValueError as error:
            return PathProblem(str(error))

    def input_trouble(
        self, path: str, *, is_one_file: bool = False, rule: PathRule | None = None
    ) -> PathProblem | None:
        """Nothing that can be known now: the API fetches nothing from servers that a user names."""
        return None

    def output_trouble(self, path: str, *, is_file: bool = False) -> PathProblem | None:
        address = address_of(path)
        if address.is_web:
            return PathProblem(f"{path!r} is a file of a web server, which can't be written to", "name an object store")
        if is_file and not address.key:
            return PathProblem(f"{path!r} names no object", "put a name behind the bucket")
        return None

    def split(self, path: str) -> tuple[str, list[str]]:
        return split(path)

    def below(self, path: str, top: str) -> str | None:
        address, folder = address_of(path), address_of(top)
        if address == folder:
            return posixpath.basename(address.key)
        prefix = folder.key and f"{folder.key}/"
        is_below = address.store == folder.store and address.key.startswith(prefix)
        return address.key.removeprefix(prefix) if is_below else None

    def unique_relative_path(self, path: str) -> str:
        address = address_of(path)
        return f"{address.store.partition('://')[2]}/{address.key}"

    def is_folder(self, path: str) -> bool:
        import obstore

        address = address_of(path)
        if address.is_web:
            return False
        with metered(path, "list"), in_plain_words(path):
            pages = obstore.list(client_of(address.store), address.key or None, chunk_size=1)
            return next(iter(pages), None) is not None

    def is_there(self, path: str) -> bool:
        return single(path, address_of(path)) is not None or self.is_folder(path)

    def files(self, path: str, below: Sequence[str] = (), rule: PathRule | None = None) -> ObjectListing:
        check(path if below else split(path)[0], rule)
        return ObjectListing(path, below)

    def version(self, path: str | bytes) -> Version:
        url = os.fsdecode(path)
        version = single(url, address_of(url))
        if version is None:
            raise Missing(2, "there is no such object", url)
        return version

    def open(
        self,
        path: str | bytes,
        rule: PathRule | None = None,
        *,
        version: Version | None = None,
        is_streamed: bool = False,
    ) -> BinaryIO:
        url = os.fsdecode(path)
        check(url, rule)
        file = ObjectFile(url, version)
        return cast(BinaryIO, StreamedObject(file) if is_streamed else file)

    def whole(self, path: str, version: Version) -> memoryview:
        return whole(path, version)

    def copy(
        self, path: str, version: Version, fd: int, part: range | None = None, rule: PathRule | None = None
    ) -> None:
        check(path, rule)
        copy(path, version, fd, part)

    def identity(self, path: str) -> str:
        address = address_of(path)
        return f"{address.store}/{address.key}"

    def create(self, path: str, job_id: str, rule: PathRule | None = None) -> NewFile:
        check(path, rule)
        return uploads.create(path, job_id)

    def put(self, path: str, file: BinaryIO, size_bytes: int) -> None:
        uploads.put(path, file, size_bytes)

    def replace(self, source: str, target: str) -> None:
        uploads.replace(source, target)

    def unfinished(self, path: str, job_id: str) -> Sequence[str]:
        return uploads.unfinished(path, job_id)

    def discard(self, unfinished: Sequence[str]) -> None:
        uploads.discard(unfinished)
