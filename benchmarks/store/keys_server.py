"""A store that has very many keys, and speaks as much S3 as it takes to list and read them:
`python -m benchmarks.store.keys_server PORT`. The bucket `keys-N` has N objects in folders of 1,000 each.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final
from urllib.parse import parse_qsl, urlsplit

CONTENT: Final = b"0123456789abcdef"
_PAGE: Final = 1000
_TAG: Final = "4032af8d61035123906e58e067140cc5"
_ENTRY: Final = (
    "<Contents><Key>%s</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
    f"<ETag>&quot;{_TAG}&quot;</ETag><Size>{len(CONTENT)}</Size><StorageClass>STANDARD</StorageClass></Contents>"
)


def key_of(number: int) -> str:
    """The name of an object; names are in the order of their numbers."""
    return f"in/part-{number // 1000:05d}/img_{number:07d}.jpg"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        bucket, _, key = address.path[1:].partition("/")
        if not key:
            self._list(int(bucket.removeprefix("keys-")), dict(parse_qsl(address.query)))
        elif key.endswith(".jpg"):
            end = f"0-{len(CONTENT) - 1}/{len(CONTENT)}"
            self._answer(206 if "Range" in self.headers else 200, CONTENT, **{"Content-Range": f"bytes {end}"})
        else:
            self._answer(404, b"<Error><Code>NoSuchKey</Code><Message>there is none</Message></Error>")

    do_HEAD = do_GET

    def _list(self, count: int, query: dict[str, str]) -> None:
        first = int(query.get("continuation-token", "0"))
        numbers = range(first, min(count, first + int(query.get("max-keys", _PAGE))))
        entries = "".join([_ENTRY % key_of(number) for number in numbers])
        more = numbers.stop < count
        token = f"<NextContinuationToken>{numbers.stop}</NextContinuationToken>" if more else ""
        text = f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{entries}</ListBucketResult>"
        self._answer(200, text.encode())

    def _answer(self, status: int, content: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("ETag", f'"{_TAG}"')
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class Server(ThreadingHTTPServer):
    """Until it is killed."""

    daemon_threads = True
    request_queue_size = 256


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[1])), Handler) as server:
        server.serve_forever()
