"""An object of S3, whose upload is completed only if the name is free: it is there at once, or never.

obstore can't name that condition, so this is the one place that needs botocore. An upload that nobody completes is
invisible, but it is stored and paid for: `unfinished` lists those of a key, and `abort` ends them.
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from parallelrun_core.storage.objects.address import Address, address_of
from parallelrun_core.storage.objects.meters import metered
from parallelrun_core.storage.objects.trouble import AccessDenied, Missing, StoreError, Throttled, name_taken
from parallelrun_core.storage.objects.uploads import s3
from parallelrun_core.storage.objects.uploads.parts import Parts

_OWNER: Final = "parallelrun-job"
_UPLOAD: Final = "parallelrun-upload"
_TAKEN: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})
_MISSING: Final = frozenset({"404", "NoSuchBucket", "NoSuchKey"})
_NO_UPLOAD: Final = "NoSuchUpload"
_FORBIDDEN: Final = frozenset({"403", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"})
_TOO_MUCH: Final = frozenset(
    {"429", "503", "SlowDown", "ServiceUnavailable", "TooManyRequests", "RequestLimitExceeded"}
)
_SEPARATOR: Final = "#upload="
_CHANGED: Final = "it was changed while it was made again"
_COPIED_AT_ONCE: Final = 5 << 30
"""A store copies so much in one step."""
_COPIED_PART: Final = 1 << 30


class _UploadGone(StoreError):
    """The upload is not there any more: completed, or aborted by whoever makes the output now. Try again."""


class _PresentObject(NamedTuple):
    """The object that has the name now."""

    tag: str
    owner: str
    upload: str
    """The upload that it is of, by the mark that each one of ours sets."""


class MultipartObject:
    """An object on its way in parts, as `interface.NewFile` describes it.

    Raises:
        Conflict: an object of somebody else has that name; it is better known before all is uploaded.
    """

    def __init__(self, url: str, address: Address, job_id: str) -> None:
        self._url, self._job_id, self._mark = url, job_id, secrets.token_hex(16)
        self._client, self._where = s3.place_of(address)
        self._replaced = self._present()
        """What this job has published earlier."""
        if self._replaced is not None and self._replaced.owner != job_id:
            raise name_taken(url)
        with metered(url, "upload"), _in_plain_words(url):
            begun = self._client.create_multipart_upload(**self._where, Metadata={_OWNER: job_id, _UPLOAD: self._mark})
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

    def publish(self, own_hashes: Container[str]) -> None:
        """Complete the upload, if the name is free, or has what it had in the beginning: this job's own.

        So an upload that was paused, and goes on when another one has made the output, replaces nothing.
        """
        try:
            if self._replaced is not None and self._present() != self._replaced:  # not every store knows If-Match here
                raise _UploadGone(errno.ESTALE, _CHANGED, self._url)
            self._complete({"IfMatch": self._replaced.tag} if self._replaced is not None else {"IfNoneMatch": "*"})
        except (FileExistsError, FileNotFoundError, _UploadGone) as error:
            present = self._present()
            if present is not None and present.owner != self._job_id:
                raise name_taken(self._url) from error
            if present is None or present.upload != self._mark:  # else only the answer to an earlier try was lost
                raise _UploadGone(errno.ESTALE, _CHANGED, self._url) from error
        self._is_published = True

    def _put(self, number: int, content: memoryview) -> str:
        whole = content.obj if content.nbytes == len(content.obj) else bytes(content)  # type: ignore[arg-type]
        with metered(self._url, "put") as call, _in_plain_words(self._url):
            answer = self._client.upload_part(**self._where, UploadId=self._upload, PartNumber=number, Body=whole)
            call.bytes = content.nbytes
            call.retries = answer["ResponseMetadata"].get("RetryAttempts", 0)
        return str(answer["ETag"])

    def _complete(self, condition: dict[str, str]) -> None:
        parts = [{"ETag": tag, "PartNumber": number} for number, tag in enumerate(self._tags, 1)]
        with metered(self._url, "upload"), _in_plain_words(self._url):
            self._client.complete_multipart_upload(
                **self._where, UploadId=self._upload, MultipartUpload={"Parts": parts}, **condition
            )

    def _present(self) -> _PresentObject | None:
        try:
            with metered(self._url, "head"), _in_plain_words(self._url):
                head = self._client.head_object(**self._where)
        except Missing:
            return None
        marks = head["Metadata"]
        return _PresentObject(str(head["ETag"]), marks.get(_OWNER, ""), marks.get(_UPLOAD, ""))

    def _abort(self) -> None:
        with metered(self._url, "upload"), _in_plain_words(self._url):
            self._client.abort_multipart_upload(**self._where, UploadId=self._upload)


def unfinished(address: Address) -> list[str]:
    """The uploads of exactly this key that nobody has completed."""
    client, where = s3.place_of(address)
    url, key = f"{address.store}/{address.key}", where["Key"]
    with metered(url, "list"), _in_plain_words(url):
        pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=where["Bucket"], Prefix=key)
        uploads = [upload for page in pages for upload in page.get("Uploads", ())]
    return [f"{url}{_SEPARATOR}{each['UploadId']}" for each in uploads if each["Key"] == key]


def is_upload(name: str) -> bool:
    """Return whether a name is one of `unfinished`."""
    return _SEPARATOR in name


def abort(name: str) -> None:
    """End one of `unfinished`; whoever still writes it will fail. One that is gone is ignored."""
    url, _, upload = name.rpartition(_SEPARATOR)
    client, where = s3.place_of(address_of(url))
    with suppress(Missing, _UploadGone), metered(url, "upload"), _in_plain_words(url):
        client.abort_multipart_upload(**where, UploadId=upload)


def replace(url: str, source_address: Address, target: Address) -> None:
    """Let an object take the place of another one of the same store, in one step; its own name is free then."""
    client, source = s3.place_of(source_address)
    _, where = s3.place_of(target)
    with metered(url, "head"), _in_plain_words(url):
        head = client.head_object(**source)
    with metered(url, "copy") as call, _in_plain_words(url):
        if head["ContentLength"] <= _COPIED_AT_ONCE:
            client.copy_object(**where, CopySource=source)
        else:
            call.requests = _copy_in_parts(client, source, where, head)
    with metered(url, "delete"), _in_plain_words(url):
        client.delete_object(**source)


def _copy_in_parts(client: Any, source: dict[str, str], where: dict[str, str], head: dict[str, Any]) -> int:
    """Return how many requests that took."""
    upload = client.create_multipart_upload(**where, Metadata=head["Metadata"])["UploadId"]
    parts = []
    for number, begin in enumerate(range(0, head["ContentLength"], _COPIED_PART), 1):
        end = min(begin + _COPIED_PART, head["ContentLength"]) - 1
        copied = client.upload_part_copy(
            **where, UploadId=upload, PartNumber=number, CopySource=source, CopySourceRange=f"bytes={begin}-{end}"
        )
        parts.append({"ETag": copied["CopyPartResult"]["ETag"], "PartNumber": number})
    client.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": parts})
    return len(parts) + 2


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
        if code == _NO_UPLOAD:
            raise _UploadGone(errno.ESTALE, words, url) from error
        if code in _MISSING:
            raise Missing(errno.ENOENT, words, url) from error
        if code in _FORBIDDEN:
            raise AccessDenied(errno.EACCES, words, url) from error
        raise (Throttled if code in _TOO_MUCH else StoreError)(errno.EIO, words, url) from error
    except BotoCoreError as error:
        raise StoreError(errno.EIO, str(error), url) from error
