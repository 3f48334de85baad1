"""Files of web servers, one request each.

Nothing is read from an address that `untrusted/connecting.py` refuses, and a redirect is followed only on the server
that was named and allowed: another one could be any that this machine reaches.
"""

from __future__ import annotations

import base64
import builtins
import errno
import os
import ssl
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache, partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Lock
from typing import Any, Final
from urllib.parse import quote, unquote, urljoin, urlsplit

from parallelrun_core.storage.interface import Replaced, Version
from parallelrun_core.storage.objects.trouble import (
    UNENCRYPTED,
    AccessDenied,
    Missing,
    StoreAway,
    StoreError,
    Throttled,
)
from parallelrun_core.untrusted.addresses import LOCAL_NAMES, Reach, is_literal_of
from parallelrun_core.untrusted.canonical import UrlParts, canonical
from parallelrun_core.untrusted.connecting import AddressRefused, connect_checked, refusal_to_read

_CONNECT_S: Final = 5.0
_ANSWER_S: Final = 15.0
"""Without progress; a large file may take as long as it needs."""
_RETRY_FOR_S: Final = 30.0
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS: Final = 5
_MOST_IDLE: Final = 8
"""Connections to one server that wait for the next request."""
_SAFE: Final = "/%?&=+$,;:@!~*'()[]-._"
_AGAIN: Final = frozenset({408, 429, 500, 502, 503, 504})


class WebAnswer:
    """The content of a file, still to come."""

    def __init__(self, url: str, connection: HTTPConnection, response: HTTPResponse) -> None:
        self._url, self._connection, self._response = url, connection, response

    def bytes(self) -> bytes:
        """Read all of it.

        Raises:
            StoreAway: it was cut off.
        """
        return b"".join(self.stream())

    def stream(self, min_chunk_size: int = 1 << 20) -> Iterator[builtins.bytes]:
        """Yield it in pieces.

        Raises:
            StoreAway: it was cut off.
        """
        try:
            while chunk := self._response.read(min_chunk_size):
                yield chunk
            if self._response.length:
                raise StoreAway(errno.EIO, "the server has broken off its answer", self._url)
        except (OSError, HTTPException) as error:
            _end(self._connection, self._response)
            if isinstance(error, StoreError):
                raise
            raise StoreAway(errno.EIO, f"the server has broken off its answer: {error}", self._url) from error
        except BaseException:  # whoever reads it wants no more
            _end(self._connection, self._response)
            raise
        _idle(os.getpid()).give_back(_server_of(canonical(self._url)), self._connection)


def web_version(url: str) -> Version:
    """The version of a file that is there now.

    Raises:
        StoreError: it can't be asked for.
    """
    connection, response = _ask(url, "HEAD", {})
    response.read()
    _idle(os.getpid()).give_back(_server_of(canonical(url)), connection)
    length = response.headers.get("Content-Length", "")
    return _version_of(url, response, int(length) if length.isdecimal() else -1)


def web_get(url: str, version: Version, part: range | None = None) -> WebAnswer:
    """A version of a file, or a part of it.

    Raises:
        StoreError: the server doesn't give it.
        Replaced: there is another version now.
    """
    headers = {"If-Match": version.tag} if version.tag else {}
    if part is not None:
        headers["Range"] = f"bytes={part.start}-{part.stop - 1}"
    connection, response = _ask(url, "GET", headers)
    try:
        if part is not None and response.status != 206:
            raise StoreError(errno.EOPNOTSUPP, "Range request not supported by this server", url)
        present = _version_of(url, response, version.size_bytes)
        is_same = present.tag == version.tag if version.tag else present.modified == version.modified
        if not is_same:
            raise Replaced(f"{url} has been replaced since it was listed")
    except BaseException:
        _end(connection, response)
        raise
    return WebAnswer(url, connection, response)


def first_bytes(url: str, count: int, accept: str) -> bytes:
    """The first bytes of what a server answers; empty if it answers with anything but a success, or not in time."""
    parts = canonical(url)
    try:
        connection = _connected(parts, url)
        try:
            connection.request("GET", _target(parts), headers={"Accept": accept})
            response = connection.getresponse()
            head = response.read(count) if response.status == 200 else b""
            response.close()
            return head
        finally:
            connection.close()
    except (OSError, HTTPException):
        return b""


def _version_of(url: str, response: HTTPResponse, size_bytes: int) -> Version:
    if size_bytes < 0:
        raise StoreError(errno.EPROTO, "the server doesn't say how long this file is", url)
    tag = response.headers.get("ETag", "").strip()
    if tag and not tag.endswith('"'):
        tag = f'"{tag}"'
    modified = 0.0
    with suppress(TypeError, ValueError):
        modified = parsedate_to_datetime(response.headers["Last-Modified"]).timestamp()
    return Version(size_bytes, modified, tag)


def _ask(url: str, method: str, headers: dict[str, str]) -> tuple[HTTPConnection, HTTPResponse]:
    """Send a request, again while the server has too much to do; returns what it answers with success.

    Raises:
        StoreError: it refuses, is away, or sends us to another server.
        Replaced: it has another version.
    """
    place, redirects = url, 0
    deadline, pause_s = time.monotonic() + _RETRY_FOR_S, _FIRST_PAUSE_S
    while True:
        try:
            connection, response = _send(place, url, method, headers)
        except StoreError:
            raise
        except AddressRefused as error:
            raise AccessDenied(errno.EACCES, str(error.strerror), url) from error
        except ssl.SSLCertVerificationError as error:
            raise StoreError(errno.EPROTO, f"the certificate of {_origin(url)}: {error.verify_message}", url) from error
        except (OSError, HTTPException) as error:
            failure: StoreError = StoreAway(errno.EIO, f"{_origin(url)} can't be reached ({error}): is it up?", url)
            failure.__cause__ = error
        else:
            if 200 <= response.status < 300:
                return connection, response
            _end(connection, response)
            if response.status in _REDIRECTS and redirects < _MOST_REDIRECTS:
                place, redirects = _next_place(place, response, url), redirects + 1
                continue
            if response.status not in _AGAIN:
                raise _refused(response, url)
            kind = Throttled if response.status in (429, 503) else StoreAway
            failure = kind(errno.EIO, f"HTTP {response.status} {response.reason}", url)
        if time.monotonic() + pause_s >= deadline:
            raise failure
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _send(place: str, url: str, method: str, headers: dict[str, str]) -> tuple[HTTPConnection, HTTPResponse]:
    parts = canonical(place)
    idle = _idle(os.getpid())
    for connection in idle.taken(_server_of(parts)):
        with suppress(OSError, HTTPException):  # the server may have ended it meanwhile
            connection.request(method, _target(parts), headers=_with_ours(headers))
            return connection, connection.getresponse()
        connection.close()
    connection = _connected(parts, url)
    try:
        connection.request(method, _target(parts), headers=_with_ours(headers))
        return connection, connection.getresponse()
    except BaseException:
        connection.close()
        raise


def _end(connection: HTTPConnection, response: HTTPResponse) -> None:
    response.close()  # which has the socket where the server ends the connection
    connection.close()


def _with_ours(headers: dict[str, str]) -> dict[str, str]:
    return {"User-Agent": "parallelrun", "Accept": "*/*", **headers}


def _refused(response: HTTPResponse, url: str) -> OSError:
    status = response.status
    if status in (404, 410):
        return Missing(errno.ENOENT, "there is no such object", url)
    if status in (401, 403):
        return AccessDenied(errno.EACCES, f"the server refuses to give this file (HTTP {status})", url)
    if status in (412, 416):
        return Replaced(errno.ESTALE, f"{url} has been replaced since it was listed")
    return StoreError(errno.EIO, f"HTTP {status} {response.reason}", url)


def _next_place(place: str, response: HTTPResponse, url: str) -> str:
    """Return where a redirect on the same server leads.

    Raises:
        AccessDenied: it leads to another one.
    """
    target_url = urljoin(place, response.headers.get("Location", "")).partition("#")[0]
    try:
        is_same = _server_of(canonical(target_url)) == _server_of(canonical(place))
    except ValueError:
        is_same = False
    if not is_same:
        message = (
            f"the server redirects to another one ({_origin(target_url)}), which is not followed: name the URL of the "
            "file there, if jobs may use it"
        )
        raise AccessDenied(errno.EACCES, message, url)
    return target_url


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"[:200]


def _server_of(parts: UrlParts) -> tuple[str, str]:
    return parts.scheme, parts.host


def _target(parts: UrlParts) -> str:
    return "/" + quote(parts.path + parts.query, safe=_SAFE)


class _Idle:
    """Connections that wait for the next request."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._connections: defaultdict[tuple[str, str], list[HTTPConnection]] = defaultdict(list)

    def taken(self, server: tuple[str, str]) -> Iterator[HTTPConnection]:
        """Yield one after another of those to a server, which is then no longer idle."""
        while True:
            with self._lock:
                if not self._connections[server]:
                    return
                connection = self._connections[server].pop()
            yield connection

    def give_back(self, server: tuple[str, str], connection: HTTPConnection) -> None:
        """Have one wait whose answer was read."""
        with self._lock:
            if connection.sock is not None and len(self._connections[server]) < _MOST_IDLE:
                self._connections[server].append(connection)
                return
        connection.close()


@cache
def _idle(process_id: int) -> _Idle:
    """The connections of this process: one that is forked from it has none."""
    return _Idle()


class _PlainConnection(HTTPConnection):
    def connect(self) -> None:
        self.sock = _checked_socket(self.host, self.port)


class _TlsConnection(HTTPSConnection):
    def connect(self) -> None:
        self.sock = _tls().wrap_socket(_checked_socket(self.host, self.port), server_hostname=self.host)


def _checked_socket(host: str, port: int) -> Any:
    connected = connect_checked(host, port, partial(refusal_to_read, host), _CONNECT_S)
    connected.settimeout(_ANSWER_S)
    return connected


def _connected(parts: UrlParts, url: str) -> HTTPConnection:
    """A connection for requests to a server, by way of the proxy that the environment names for it."""
    origin = urlsplit(f"{parts.scheme}://{parts.host}")
    host, port = str(origin.hostname), origin.port
    if parts.scheme == "http":
        if host not in LOCAL_NAMES and os.environ.get("AWS_ALLOW_HTTP", "").lower() not in ("1", "true"):
            raise StoreError(errno.EPROTONOSUPPORT, UNENCRYPTED, url)
        return _PlainConnection(host, port or 80, timeout=_ANSWER_S)
    proxy = urllib.request.getproxies().get("https", "")
    if not proxy or host in LOCAL_NAMES or urllib.request.proxy_bypass(host):
        return _TlsConnection(host, port or 443, timeout=_ANSWER_S)
    if is_literal_of(host, Reach.MACHINE):  # of names, the proxy must know where they may lead
        raise AddressRefused(errno.EACCES, f"{host} is an address where only machines themselves have business")
    try:
        through = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        proxy_port = through.port or 3128
    except ValueError:  # which may repeat a password
        raise StoreError(errno.EINVAL, "the proxy in https_proxy is no URL of a server", url) from None
    connection = HTTPSConnection(str(through.hostname), proxy_port, timeout=_ANSWER_S, context=_tls())
    connection.set_tunnel(host, port or 443, headers=_proxy_headers(through.username, through.password))
    return connection


def _proxy_headers(user: str | None, password: str | None) -> dict[str, str]:
    if user is None:
        return {}
    pair = f"{unquote(user)}:{unquote(password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


@cache
def _tls() -> ssl.SSLContext:
    context = ssl.create_default_context()
    places = ssl.get_default_verify_paths()
    if not (places.cafile or places.capath):  # an image without certificates of its own
        import certifi

        context.load_verify_locations(certifi.where())
    return context
