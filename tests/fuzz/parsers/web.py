"""What comes over HTTP: URLs lead where they say, forms end, and a cookie that nobody has signed signs in nobody."""

from __future__ import annotations

import asyncio
import posixpath
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from parallelrun_api.http.sessions import Sessions
from parallelrun_api.http.token import Token
from parallelrun_api.submission.forms import SubmissionForm
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.untrusted.canonical import canonical
from tests.fuzz.parser import FuzzedParser, check

_MOST_BYTES = 1 << 20


def _read_url(data: bytes) -> None:
    url = data.decode()
    parts = canonical(url)
    decoded = parts.path
    for _ in range(5):
        decoded = unquote(decoded).replace("\\", "/")
        resolved = posixpath.normpath("/allowed/" + decoded)
        check(resolved.startswith("/allowed"), f"{url!r} leads out of its folder, as {resolved!r}")
    if parts.scheme in ("http", "https") and "@" not in parts.host:
        check((urlsplit(url).hostname or "") in parts.host, f"{url!r}: others see the host {urlsplit(url).hostname!r}")
    slash = "/" if parts.path else ""
    again = canonical(f"{parts.scheme}://{parts.host}{slash}{parts.path}{parts.query}")
    check(again == parts, f"{url!r} means something else the second time: {again}")


def _read_form(data: bytes) -> None:
    content_type, _, body = data.partition(b"\n")
    with tempfile.TemporaryDirectory(prefix="parallelrun-fuzz-") as folder:
        form = SubmissionForm(content_type.decode("latin-1"), max_spec_bytes=_MOST_BYTES)

        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(body), 7):
                yield body[start : start + 7]

        try:
            asyncio.run(form.read(chunks(), Path(folder)))
            form.spec_text()
            form.sha256()
        finally:
            form.close()


class _Cookies:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="parallelrun-fuzz-")
        self._sessions = Sessions(Token("secret-of-the-server" * 3), Path(self._folder.name))
        _, header = self._sessions.new_cookie("default", {b"host": b"a:1"})
        self.valid = header.split(";")[0].encode()

    def read(self, data: bytes) -> None:
        session = self._sessions.of({b"host": b"a:1", b"cookie": data})
        is_valid = self.valid.split(b"=", 1)[1] in data
        check(session is None or is_valid, f"{data!r} signs in {session}")


_COOKIES = _Cookies()
_BODY = (
    b'--b\r\nContent-Disposition: form-data; name="spec"\r\n\r\n{"a": 1}\r\n'
    b'--b\r\nContent-Disposition: form-data; name="code"; filename="c.zip"\r\n'
    b"Content-Type: application/zip\r\n\r\nPK\r\n--b--\r\n"
)

PARSERS = [
    FuzzedParser(
        "url",
        [
            b"s3://bucket/a/b",
            b"https://example.com:443/a/%2e%2e/b?x=1",
            b"http://[::1]:9000/a",
            b"abfss://c@account/x;y=../z",
            b"azureml://datastores/x/paths/%252e%252e/",
            b"https://user:secret@host/",
            b"gs://b/a//b",
            "https://exämple/ab".encode(),
            b"s3://b/\xe2\x80\xa5/x",
        ],
        _read_url,
        (ValueError,),
    ),
    FuzzedParser(
        "form",
        [
            b"multipart/form-data; boundary=b\n" + _BODY,
            b'multipart/form-data; boundary="b"\n' + _BODY.replace(b"\r\n", b"\n"),
            b"multipart/form-data; boundary=\n--",
            b"multipart/form-data; boundary=b; charset=x\n" + _BODY[:40],
        ],
        _read_form,
        (ParallelRunError,),
    ),
    FuzzedParser(
        "cookie",
        [_COOKIES.valid, b"parallelrun-1=a.b.c.d; x=y", b'parallelrun-1="a\\073"', b"=;=;", b""],
        _COOKIES.read,
        (),
    ),
]
