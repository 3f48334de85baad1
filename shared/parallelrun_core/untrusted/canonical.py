"""The one reading of a URL, and of a path in a store, before it is compared with what is allowed.

Servers and proxies resolve what a comparison of texts doesn't see: `..`, also as `%2e%2e` or encoded twice, `\\` for
`/`, parameters behind `;`, and characters that only look like dots. Whatever could lead out of a folder in one of these
ways is refused here, and never rewritten: then all who read it later read the same.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

_URL: Final = re.compile(r"([a-z][a-z0-9+.-]*):/++([^/?#]*)(?:/([^?]*))?(\?.*)?", re.IGNORECASE | re.DOTALL)
_WEB: Final = {"http": ":80", "https": ":443"}
_WEB_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?)(:[0-9]{1,5})?", re.IGNORECASE)
_NAME_OF_STORE: Final = re.compile(r"[^\s\\%\x00-\x1f\x7f]*")
_HARMLESS: Final = re.compile(r"[A-Za-z0-9_=,+@~ -]+(?:[./][A-Za-z0-9_=,+@~ -]+)*")
_ENCODED: Final = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_LEFT_OUT: Final = re.compile(r"\0.*|[\x01-\x1f\x7f]", re.DOTALL)
"""What some servers leave out of a name: control characters, and all behind a NUL."""
_ENCODED_OTHERWISE: Final = re.compile(
    r"%u00([2-7][0-9A-F])|%C([01])%([89AB][0-9A-F])|%E0%8([01])%([89AB][0-9A-F])|%F0%80%8([01])%([89AB][0-9A-F])",
    re.IGNORECASE,
)
"""ASCII as no encoder writes it, and some decoders read it: `%u002e`, or more bytes than UTF-8 has for it."""
_SEPARATORS: Final = re.compile(r"[/\\]")
_MOST_ENCODINGS: Final = 8
_LAST_PORT: Final = 65535


class UrlParts(NamedTuple):
    """A URL, in one spelling for all that name the same server."""

    scheme: str
    host: str
    """The host: of a web server in lower case, without the port that the scheme stands for."""
    path: str
    """The path as it came, without the '/' in front."""
    query: str
    """The query with its '?'; empty if there is none. Only web servers have one: in a store, it is part of a key."""


def canonical(url: str) -> UrlParts:
    """The parts of a URL that leads nowhere but where it says.

    Raises:
        ValueError: it is no URL, or a server could read another one in it.
    """
    parts = _URL.fullmatch(url)
    if parts is None:
        raise ValueError(f"{_without_secrets(url)!r} is not a URL")
    scheme, host, path, query = parts[1].lower(), parts[2], parts[3] or "", parts[4] or ""
    if scheme not in _WEB:
        if not _NAME_OF_STORE.fullmatch(host):
            raise ValueError(f"{_without_secrets(url)!r} has a character in the name of its store that no name has")
        check_key(path + query, url)
        return UrlParts(scheme, host, path + query, "")
    check_key(path.removesuffix("/"), url)
    return UrlParts(scheme, _web_host(url, scheme, host), path, query)


def _web_host(url: str, scheme: str, host: str) -> str:
    if not host or "@" in host:  # callers say what is wrong with these
        return host
    parts = _WEB_HOST.fullmatch(host)
    if parts is None or int((parts[3] or ":0")[1:]) > _LAST_PORT:
        raise ValueError(f"{_without_secrets(url)!r} names no server")
    return host.lower().removesuffix(_WEB[scheme])


def canonical_origin(url: str) -> str:
    """The URL of a server, and nothing behind it.

    Raises:
        ValueError: it is none, or has more in it than it takes to reach the server.
    """
    try:
        parts = canonical(url)
        is_origin = parts.scheme in _WEB and bool(parts.host) and "@" not in parts.host and not parts.path + parts.query
    except ValueError:
        is_origin = False
    if not is_origin:
        raise ValueError("must be the URL of a server, such as https://minio.example.com:9000, and nothing else")
    return f"{parts.scheme}://{parts.host}"


def check_key(path: str, url: str = "") -> None:
    """Make sure that a path below a server or in a store names what it says; one that ends in `/` names a folder.

    Args:
        url: what it is part of, for the message.

    Raises:
        ValueError: it has an empty name, or something that a server may take for `.` or `..`, in it.
    """
    if not path or _HARMLESS.fullmatch(path):
        return
    if "" in path.removesuffix("/").split("/") or not _DOTS.isdisjoint(_names(path)):
        raise ValueError(
            f"{_without_secrets(url or path)!r} has an empty name, '.' or '..' in it, which can't be asked for in a "
            "store; it may also be encoded (%2e)"
        )
    if any(ord(char) < 32 or ord(char) == 127 for char in path):
        raise ValueError(f"{_without_secrets(url or path)!r} has a control character in it")


_DOTS: Final = frozenset({".", ".."})


def _names(path: str) -> set[str]:
    """The names that any server could see in a path, however often it decodes it."""
    names: set[str] = set()
    for _ in range(_MOST_ENCODINGS):
        plain = unicodedata.normalize("NFKC", path)
        for text in (path, plain):
            names.update(_LEFT_OUT.sub("", name.partition(";")[0]).strip() for name in _SEPARATORS.split(text))
        decoded = _decoded(plain)
        if decoded == plain:
            return names
        path = decoded
    return {".."}  # nobody encodes a name so often but to hide it


def _decoded(text: str) -> str:
    """The text without one encoding, as `urllib.parse.unquote` has it, which rules that do no I/O may not import."""
    text = _ENCODED_OTHERWISE.sub(_lenient, text)
    return _ENCODED.sub(lambda encoded: bytes.fromhex(encoded[0].replace("%", "")).decode(errors="replace"), text)


def _lenient(encoded: re.Match[str]) -> str:
    code, *pairs = encoded.groups()
    high, low = next(filter(all, zip(pairs[::2], pairs[1::2], strict=True)), ("0", code))
    return chr(int(high, 16) << 6 | int(low, 16) & 0x3F) if code is None else chr(int(code, 16))


def _without_secrets(url: str) -> str:
    """The URL for a message: without a user, a password or a signature."""
    return re.sub(r"//[^/?#]*@", "//…@", url.partition("?")[0])[:200]
