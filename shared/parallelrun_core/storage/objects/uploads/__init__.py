"""New objects: uploaded in parts, and there at once or never.

Every store takes an object in parts, and none of obstore's ways of completing one asks whether the name is free. So
there are two ways here:

    multipart.py    S3: completing the upload itself names the condition. It is there under its name or not at all
    s3.py           the clients for it
    beside.py       the others: uploaded under another name, then copied by the store itself if the name is free, which
                    costs it nothing within one account or bucket

Both mark the object with the job that made it. So a job whose concatenation is repeated may replace its own earlier
output, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from parallelrun_core.storage.interface import NewFile
from parallelrun_core.storage.objects.address import address_of
from parallelrun_core.storage.objects.uploads import beside, multipart, s3


def create(url: str, owner: str) -> NewFile:
    """See `interface.Storage.create`."""
    address = address_of(url)
    made: NewFile
    if s3.is_s3(address):
        made = multipart.MultipartObject(url, address, owner)
    else:
        made = beside.ObjectBeside(url, address, owner)
    return made


def unfinished(url: str, owner: str) -> Sequence[str]:
    """See `interface.Storage.unfinished`: names that `discard` understands."""
    address = address_of(url)
    if s3.is_s3(address):
        return multipart.unfinished(address)
    return beside.unfinished(address, owner)


def discard(names: Sequence[str]) -> None:
    """See `interface.Storage.discard`."""
    for name in names:
        if multipart.is_upload(name):
            multipart.abort(name)
        else:
            beside.remove(name)
