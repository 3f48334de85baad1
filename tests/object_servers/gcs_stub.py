"""Google Cloud Storage's XML API, as far as obstore uses it: `python gcs_stub.py PORT`. Everything is in memory."""

from __future__ import annotations

import hashlib
import itertools
import sys
import threading
import time
from collections.abc import Mapping
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 1000
_COPY, _IF_GENERATION = "x-goog-copy-source", "x-goog-if-generation-match"


class Refused(Exception):
    """The request fails with this status."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


class Stored(NamedTuple):
    content: bytes
    generation: int
    changed_at: float
    metadata: dict[str, str]

    @property
    def etag(self) -> str:
        return _etag(self.content)


class Buckets:
    """All that is stored; each call is atomic."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._generations = itertools.count(1_700_000_000_000_000)
        self._buckets: dict[str, dict[str, Stored]] = {}
        self._uploads: dict[str, tuple[dict[str, str], dict[int, bytes]]] = {}

    def make(self, bucket: str) -> None:
        self._buckets.setdefault(bucket, {})

    def objects(self, bucket: str) -> dict[str, Stored]:
        if bucket not in self._buckets:
            raise Refused(404, "NoSuchBucket")
        return self._buckets[bucket]

    def get(self, bucket: str, key: str) -> Stored:
        try:
            return self.objects(bucket)[key]
        except KeyError:
            raise Refused(404, "NoSuchKey") from None

    def put(self, bucket: str, key: str, content: bytes, metadata: dict[str, str], if_generation: str | None) -> Stored:
        with self._lock:
            objects = self.objects(bucket)
            present = objects[key].generation if key in objects else 0
            if if_generation is not None and int(if_generation) != present:
                raise Refused(412, "PreconditionFailed")
            objects[key] = Stored(content, next(self._generations), time.time(), metadata)
            return objects[key]

    def remove(self, bucket: str, key: str) -> None:
        with self._lock:
            if self.objects(bucket).pop(key, None) is None:
                raise Refused(404, "NoSuchKey")

    def begin(self, bucket: str, metadata: dict[str, str]) -> str:
        self.objects(bucket)
        with self._lock:
            upload = f"upload-{next(self._generations)}"
            self._uploads[upload] = metadata, {}
            return upload

    def part(self, upload: str, number: int, content: bytes) -> None:
        try:
            self._uploads[upload][1][number] = content
        except KeyError:
            raise Refused(404, "NoSuchUpload") from None

    def end(self, upload: str) -> tuple[bytes, dict[str, str]]:
        metadata, parts = self._uploads.pop(upload, ({}, {}))
        return b"".join(parts[number] for number in sorted(parts)), metadata


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    buckets = Buckets()

    def _handle(self) -> None:
        address = urlsplit(self.path)
        self.query = dict(parse_qsl(address.query, keep_blank_values=True))
        bucket, _, key = address.path[1:].partition("/")
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            getattr(self, f"_{self.command.lower()}")(unquote(bucket), unquote(key))
        except Refused as refused:
            words = f"<Error><Code>{refused.code}</Code><Message>{refused.code}: see its manual</Message></Error>"
            self._answer(refused.status, words.encode())

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle

    def _get(self, bucket: str, key: str) -> None:
        if not key:
            self._list(bucket)
            return
        stored = self.buckets.get(bucket, key)
        if self.headers.get("If-Match", stored.etag) != stored.etag:
            raise Refused(412, "PreconditionFailed")
        content, status = stored.content, 200
        more: dict[str, str] = {}
        if asked := self.headers.get("Range"):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            begin = int(first) if first else max(0, len(content) - int(last))
            end = min(len(content), int(last) + 1) if first and last else len(content)
            if begin >= len(content):
                raise Refused(416, "InvalidRange")
            more = {"Content-Range": f"bytes {begin}-{end - 1}/{len(content)}"}
            content, status = content[begin:end], 206
        self._answer(status, content, {**self._headers_of(stored), **more})

    _head = _get

    def _list(self, bucket: str) -> None:
        prefix, after = self.query.get("prefix", ""), self.query.get("continuation-token", "")
        first = max(after, self.query.get("start-after", ""))
        objects = self.buckets.objects(bucket)
        keys = [key for key in sorted(objects, key=str.encode) if key.startswith(prefix) and key > first]
        size = int(self.query.get("max-keys", PAGE))
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(objects[key].content)}</Size>"
            f"<LastModified>{time.strftime('%Y-%m-%dT%H:%M:%S.000Z', time.gmtime(objects[key].changed_at))}"
            f"</LastModified><ETag>{escape(objects[key].etag)}</ETag></Contents>"
            for key in keys[:size]
        )
        if len(keys) > size:
            entries += f"<NextContinuationToken>{escape(keys[size - 1])}</NextContinuationToken>"
        self._answer(200, f"<ListBucketResult>{entries}</ListBucketResult>".encode())

    def _put(self, bucket: str, key: str) -> None:
        if not key:
            self.buckets.make(bucket)
            self._answer(200)
            return
        if "partNumber" in self.query:
            self.buckets.part(self.query["uploadId"], int(self.query["partNumber"]), self.body)
            self._answer(200, headers={"ETag": _etag(self.body)})
            return
        content, metadata = self.body, self._metadata()
        if source := self.headers.get(_COPY):
            from_bucket, _, from_key = unquote(source).lstrip("/").partition("/")
            content, _, _, metadata = self.buckets.get(from_bucket, from_key)
        stored = self.buckets.put(bucket, key, content, metadata, self.headers.get(_IF_GENERATION))
        self._answer(200, headers=self._headers_of(stored))

    def _post(self, bucket: str, key: str) -> None:
        if "uploads" in self.query:
            upload = self.buckets.begin(bucket, self._metadata())
            begun = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            self._answer(200, begun.encode())
            return
        content, metadata = self.buckets.end(self.query["uploadId"])
        stored = self.buckets.put(bucket, key, content, metadata, self.headers.get(_IF_GENERATION))
        done = f"<CompleteMultipartUploadResult><ETag>{escape(stored.etag)}</ETag></CompleteMultipartUploadResult>"
        self._answer(200, done.encode(), self._headers_of(stored))

    def _delete(self, bucket: str, key: str) -> None:
        if "uploadId" in self.query:
            self.buckets.end(self.query["uploadId"])
        else:
            self.buckets.remove(bucket, key)
        self._answer(204)

    def _metadata(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items() if name.lower().startswith("x-goog-meta-")}

    def _headers_of(self, stored: Stored) -> dict[str, str]:
        return {
            "ETag": stored.etag,
            "Last-Modified": formatdate(stored.changed_at, usegmt=True),
            "x-goog-generation": str(stored.generation),
            **stored.metadata,
        }

    def _answer(self, status: int, content: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        return


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        server.serve_forever()
