"""Sends the files of the web page, which need no token: nothing of any job is in them.

They are built from `studio/` of the repository and shipped with the package, in `static`. Whatever address below `/` a
person opens, the answer is the page, which finds out by itself what to show there.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

from starlette.responses import RedirectResponse, Response
from starlette.types import Receive, Scope, Send

STATIC: Final = Path(__file__).with_name("static")
_ROOT: Final = "index.html"
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".txt": "text/plain; charset=utf-8",
    ".json": "application/json",
}
_HAS_HASH: Final = re.compile(r"[.-][0-9A-Za-z_]{8,}\.[a-z]+$")
"""Such a file never changes: another content has another name."""
_A_YEAR: Final = "public, max-age=31536000, immutable"
_NOT_OURS: Final = ("/v1", "/azure", "/livez", "/readyz", "/metrics")
_SHOWN: Final = re.compile(r"/v1(/jobs/[^/:]+|/jobs|/nodes)")
"""What the page shows of the API, under the same name. Whatever is below these, such as logs, is opened as it is."""
_SAFE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_NOT_BUILT: Final = b"""\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>ParallelRun</title>
<h1>ParallelRun</h1>
<p>This is a checkout without the built web page. To build it, run <code>make studio</code>, which needs Node.js.</p>
<p>The REST API is at <code>/v1</code>, and <code>/v1/openapi.json</code> describes it.</p>
</html>
"""


@dataclass(frozen=True)
class _File:
    """A file of the page, ready to be sent."""

    name: str
    data: bytes
    compressed: bytes
    tag: str


class Pages:
    """The files of one folder, which are read once: when somebody opens the page, as most servers are never asked to.

    Args:
        folder: a flat one.
    """

    path_format = "page"
    """The name that these requests share in logs and metrics."""
    name = "page"

    def __init__(self, folder: Path = STATIC) -> None:
        self._folder = folder

    @cached_property
    def _files(self) -> dict[str, _File]:
        paths = [path for path in sorted(self._folder.glob("*.*")) if path.is_file() and path.suffix in _TYPES]
        files = {path.name: _file(path.name, path.read_bytes()) for path in paths}
        return {_ROOT: _file(_ROOT, _NOT_BUILT), **files}

    def serves(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether this request is for a file of the page, or for its address, or made by a
        person who opens one.
        """
        path, is_person = scope["path"], b"text/html" in headers.get(b"accept", b"")
        if is_person and scope["method"] in ("GET", "HEAD") and _SHOWN.fullmatch(path):
            return True
        if scope["method"] not in ("GET", "HEAD") or any(
            path == each or path.startswith(f"{each}/") for each in _NOT_OURS
        ):
            return False
        return path == "/" or path[1:] in self._files or is_person

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["route"] = self
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if match := _SHOWN.fullmatch(scope["path"]):
            # It signs the person in, if need be. No permanent address: programs get JSON at the same one.
            answer = RedirectResponse(quote(match[1]), 303, headers={"Cache-Control": "no-store", "Vary": "Accept"})
            await answer(scope, receive, send)
            return
        await self._answer(scope["path"][1:], headers)(scope, receive, send)

    def _answer(self, name: str, request_headers: Mapping[bytes, bytes]) -> Response:
        file = self._files.get(name, self._files[_ROOT])
        headers = {
            **_SAFE_HEADERS,
            "Cache-Control": _A_YEAR if _HAS_HASH.search(file.name) else "no-cache",
            "ETag": file.tag,
            "Vary": "Accept-Encoding",
        }
        if file.tag.encode() in request_headers.get(b"if-none-match", b""):
            return Response(status_code=304, headers=headers)
        data = file.data
        if b"gzip" in request_headers.get(b"accept-encoding", b"") and len(file.compressed) < len(data):
            data = file.compressed
            headers["Content-Encoding"] = "gzip"
        return Response(data, headers=headers, media_type=_TYPES[Path(file.name).suffix])


def _file(name: str, data: bytes) -> _File:
    return _File(name, data, gzip.compress(data, 9, mtime=0), f'"{sha256(data).hexdigest()[:16]}"')
