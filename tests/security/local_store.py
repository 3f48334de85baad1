"""A server on this machine with what jobs may read, and something beside it that they may not.

It speaks as much of S3's protocol as a job needs to read, and reads paths as lenient servers do: decoded as often as
possible, with backslashes as slashes, nothing behind a NUL, and `..` resolved. `http://localhost` and
`http://127.0.0.1` are two servers to whoever compares URLs, and one here.
"""

from __future__ import annotations

import http.server
import posixpath
import re
import threading
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.security.attack import NotPlayable

ALLOWED, SHARED, PRIVATE = "allowed", "shared", "private"
"""Folders of a web server, and buckets of a store. Jobs may use the first two."""
REFUSED = "refused"
"""Below this, nobody may list anything; who tries is told what they have sent, as stores tell of a wrong signature."""
CANARY = "canary-of-another-bucket"
_MORE_THAN_UTF_8 = re.compile("%c0%ae|%u002e", re.IGNORECASE)
_MODIFIED = "Mon, 01 Jan 2024 00:00:00 GMT"


@dataclass(frozen=True)
class Request:
    """A request that has come."""

    host: str
    path: str
    """As it came."""
    authorization: str


@dataclass
class LocalStore:
    """The server; `with` it."""

    objects: dict[str, bytes] = field(
        default_factory=lambda: {
            f"{ALLOWED}/folder/x": b"a row\n",
            f"{ALLOWED}/x": b"a row\n",
            f"{SHARED}/x": b"a row\n",
            f"{PRIVATE}/x": f"{CANARY}\n".encode(),
            f"{PRIVATE}/folder/x": f"{CANARY}\n".encode(),
            "x": f"{CANARY}\n".encode(),
        }
    )
    redirects: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The status and place with which the server says that something is elsewhere, by its path."""
    requests: list[Request] = field(default_factory=list)

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"store": self})
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def other_url(self) -> str:
        """The URL by another name."""
        return f"http://localhost:{self._server.server_address[1]}"

    @property
    def roots(self) -> str:
        """The places that an operator allows here, for PARALLELRUN_ALLOWED_ROOTS."""
        return ":".join(f"{url}/{name}" for url in (self.url, self.other_url) for name in (ALLOWED, SHARED))


def store_of(target: object) -> LocalStore | None:
    """The server of a target; None where what runs there reaches no server of ours."""
    store = getattr(target, "store", None)
    assert store is None or isinstance(store, LocalStore)
    return store


def reached_store(target: object) -> LocalStore:
    """The server of a target.

    Raises:
        NotPlayable: it has none.
    """
    store = store_of(target)
    if store is None:
        raise NotPlayable("what runs there reaches no server of ours, and allows none")
    return store


class _Handler(http.server.BaseHTTPRequestHandler):
    store: LocalStore
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(has_body=False)

    def do_GET(self) -> None:
        self._answer(has_body=True)

    def _answer(self, *, has_body: bool) -> None:
        headers = self.headers
        self.store.requests.append(Request(headers.get("Host", ""), self.path, headers.get("Authorization", "")))
        parts = urlsplit(self.path)
        path, query = _resolved(parts.path), parse_qs(parts.query)
        if path in self.store.redirects:
            status, location = self.store.redirects[path]
            self._send(status, b"", {"Location": location}, has_body=has_body)
        elif "list-type" in query and REFUSED in query.get("prefix", [""])[0]:
            self._send(403, _refusal(headers.get("Authorization", "")), {}, has_body=has_body)
        elif "list-type" in query:
            self._send(200, self._listing(path, query.get("prefix", [""])[0]), {}, has_body=has_body)
        elif path in self.store.objects:
            self._send_object(self.store.objects[path], has_body=has_body)
        else:
            self._send(404, b"", {}, has_body=has_body)

    def _send_object(self, content: bytes, *, has_body: bool) -> None:
        tags = {"ETag": '"one"', "Last-Modified": _MODIFIED, "Accept-Ranges": "bytes"}
        start, _, end = self.headers.get("Range", "").removeprefix("bytes=").partition("-")
        if not end:
            self._send(200, content, tags, has_body=has_body)
            return
        part = content[int(start) : int(end) + 1]
        span = f"bytes {start}-{int(start) + len(part) - 1}/{len(content)}"
        self._send(206, part, {**tags, "Content-Range": span}, has_body=has_body)

    def _listing(self, bucket: str, prefix: str) -> bytes:
        keys = [name.removeprefix(f"{bucket}/") for name in self.store.objects if name.startswith(f"{bucket}/")]
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>&quot;one&quot;</ETag><Size>{len(self.store.objects[f'{bucket}/{key}'])}</Size></Contents>"
            for key in sorted(keys)
            if key.startswith(prefix)
        )
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>".encode()

    def _send(self, status: int, content: bytes, headers: dict[str, str], *, has_body: bool) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if has_body:
            self.wfile.write(content)


def _refusal(authorization: str) -> bytes:
    told = f"<Code>AccessDenied</Code><Message>no</Message><StringToSign>{escape(authorization)}</StringToSign>"
    return f"<Error>{told}</Error>".encode()


def _resolved(path: str) -> str:
    while (decoded := unquote(_MORE_THAN_UTF_8.sub(".", path))) != path:
        path = decoded
    path = "/".join(name.partition("\0")[0].replace("\t", "") for name in path.split("/"))
    return posixpath.normpath("/" + path.replace("\\", "/")).strip("/")
