"""New objects: uploaded in parts, and there at once or never.

Every store takes an object in parts, and none of obstore's ways of completing one asks whether the name is free. So
there are two ways here:

    multipart.py    S3: completing the upload itself names the condition. It is there under its name or not at all
    s3.py           the clients for it
    parts.py        cuts what is written into parts, for a few threads that upload them
    copy_then_delete.py
                    the others: uploaded under another name, then copied by the store itself if the name is free, which
                    costs it nothing within one account or bucket

Both mark the object with the job that made it. So a job whose concatenation is repeated may replace its own earlier
output, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO, Final

from parallelrun_core.storage.interface import NewFile
from parallelrun_core.storage.objects.address import address_of
from parallelrun_core.storage.objects.clients import client_of
from parallelrun_core.storage.objects.meters import metered
from parallelrun_core.storage.objects.trouble import in_plain_words
from parallelrun_core.storage.objects.uploads import copy_then_delete, multipart, s3
from parallelrun_core.storage.objects.uploads.parts import MAX_PARTS, requests_for

_PART_BYTES: Final = 8 << 20
_AT_ONCE: Final = 3


def create(url: str, job_id: str) -> NewFile:
    address = address_of(url)
    upload: NewFile
    if s3.is_s3(address):
        upload = multipart.MultipartObject(url, address, job_id)
    else:
        upload = copy_then_delete.ObjectBeside(url, address, job_id)
    return upload


def put(url: str, file: BinaryIO, size_bytes: int) -> None:
    import obstore

    address = address_of(url)
    part = max(_PART_BYTES, -(-size_bytes // MAX_PARTS))
    with metered(url, "put") as call, in_plain_words(url):
        obstore.put(
            client_of(address.store), address.key, file,
            use_multipart=size_bytes > part, chunk_size=part, max_concurrency=_AT_ONCE,
        )  # fmt: skip
        call.bytes = size_bytes
        call.requests = requests_for(size_bytes, part)


def replace(source_url: str, target: str) -> None:
    source, where = address_of(source_url), address_of(target)
    way = multipart if s3.is_s3(source) else copy_then_delete
    way.replace(target, source, where)


def unfinished(url: str, job_id: str) -> Sequence[str]:
    address = address_of(url)
    if s3.is_s3(address):
        return multipart.unfinished(address)
    return copy_then_delete.unfinished(address, job_id)


def discard(names: Sequence[str]) -> None:
    for name in names:
        if multipart.is_upload(name):
            multipart.abort(name)
        else:
            copy_then_delete.remove(name)
