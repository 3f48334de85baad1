"""An object of S3, whose upload is completed only if the name is free: it is there at once, or never.

obstore can't name that condition, so this is the one place that needs botocore. An upload that nobody completes is
invisible, but it is stored and paid for: `unfinished` lists those of a key, and `abort` ends them.
"""

from __future__ import annotations

import errno
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from parallelrun_core.errors import Conflict
from parallelrun_core.storage.objects.address import Address, address_of
from parallelrun_core.storage.objects.trouble import Missing, NotAllowed, StoreError
from parallelrun_core.storage.objects.uploads import s3
from parallelrun_core.storage.objects.uploads.parts import Parts

_OWNER: Final = "parallelrun-job"
_TAKEN: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})
_MISSING: Final = frozenset({"404", "NoSuchBucket", "NoSuchKey", "NoSuchUpload"})
_FORBIDDEN: Final = frozenset({"403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"})
_SEPARATOR: Final = "#upload="


class MultipartObject:
    """See `interface.NewFile`."""

    def __init__(self, url: str, address: Address, owner: str) -> None:
        self._url, self._owner = url, owner
        self._client, self._where = s3.place_of(address)
        with _in_plain_words(url):
            begun = self._client.create_multipart_upload(**self._where, Metadata={_OWNER: owner})
        self._upload: str = begun["UploadId"]
        self._parts = Parts(self._put)
        self._tags: list[str] = []
        self._is_published = False

    def __enter__(self) -> MultipartObject:
        return self

    def __exit__(self, *_: object) -> None:
        self._parts.stop()
        if not self._is_published:
            with suppress(OSError):  # it is aborted by whoever looks for what is unfinished
                self._abort()

    def write(self, data: memoryview) -> None:
        self._parts.write(data)

    def sync(self) -> None:
        self._tags = self._parts.finish()

    def publish(self, own: Container[str]) -> None:
        """Complete the upload. What this job itself has put there earlier is replaced, whatever its content."""
        try:
            self._complete({"IfNoneMatch": "*"})
        except FileExistsError as error:
            there = self._own_tag()
            if not there:
                raise Conflict(
                    f"{self._url!r} appeared after the job was submitted, and existing objects are never overwritten. "
                    "The rows are kept: remove that object, then resume the job."
                ) from error
            self._complete({"IfMatch": there})
        self._is_published = True

    def _put(self, number: int, content: memoryview) -> str:
        with _in_plain_words(self._url):
            answer = self._client.upload_part(
                **self._where, UploadId=self._upload, PartNumber=number, Body=bytes(content)
            )
        return str(answer["ETag"])

    def _complete(self, condition: dict[str, str]) -> None:
        parts = [{"ETag": tag, "PartNumber": number} for number, tag in enumerate(self._tags, 1)]
        with _in_plain_words(self._url):
            self._client.complete_multipart_upload(
                **self._where, UploadId=self._upload, MultipartUpload={"Parts": parts}, **condition
            )

    def _own_tag(self) -> str:
        """The ETag of what is there, if this job has made it."""
        with _in_plain_words(self._url):
            there = self._client.head_object(**self._where)
        return str(there["ETag"]) if there["Metadata"].get(_OWNER) == self._owner else ""

    def _abort(self) -> None:
        with _in_plain_words(self._url):
            self._client.abort_multipart_upload(**self._where, UploadId=self._upload)


def unfinished(address: Address) -> list[str]:
    """The uploads of exactly this key that nobody has completed."""
    client, where = s3.place_of(address)
    url, key = f"{address.store}/{address.key}", where["Key"]
    with _in_plain_words(url):
        pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=where["Bucket"], Prefix=key)
        uploads = [upload for page in pages for upload in page.get("Uploads", ())]
    return [f"{url}{_SEPARATOR}{each['UploadId']}" for each in uploads if each["Key"] == key]


def is_upload(name: str) -> bool:
    """Whether a name is one of `unfinished`."""
    return _SEPARATOR in name


def abort(name: str) -> None:
    """End one of `unfinished`; whoever still writes it will fail. One that is gone is ignored."""
    url, _, upload = name.rpartition(_SEPARATOR)
    client, where = s3.place_of(address_of(url))
    with suppress(Missing), _in_plain_words(url):
        client.abort_multipart_upload(**where, UploadId=upload)


@contextmanager
def _in_plain_words(url: str) -> Iterator[None]:
    """Raise what botocore raises as the errors that files have, with the URL and the store's words."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        words = f"{code}: {error.response.get('Error', {}).get('Message', '')}"
        if code in _TAKEN:
            raise FileExistsError(errno.EEXIST, words, url) from error
        if code in _MISSING:
            raise Missing(errno.ENOENT, words, url) from error
        if code in _FORBIDDEN:
            raise NotAllowed(errno.EACCES, words, url) from error
        raise StoreError(errno.EIO, words, url) from error
    except BotoCoreError as error:
        raise StoreError(errno.EIO, str(error), url) from error
