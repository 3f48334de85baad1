"""Browsers that have signed in: a cookie in place of the token, made of it, for a time.

A page can't send headers with an event stream, and must not keep the token where its scripts can read it. So it shows
the token once, or a code that somebody who has the token got for it, and the browser keeps a cookie that no script
sees and no other site can use. It is signed with a key derived from the token: any server that knows the token can
check it, it ends with the token or when the browser signs out, and the token is not in it.

A code is for the browser that shows it first. It signs in nobody who is signed in with another token: a link that
somebody else has sent must not make a browser act with their token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from parallelrun_api.http.ended_sessions import EndedSessions
from parallelrun_api.http.errors import Forbidden
from parallelrun_api.http.token import Token
from parallelrun_core.errors import Conflict, Unauthorized

SESSION_S: Final = 12 * 3600
CODE_S: Final = 600
HEADER: Final = "X-ParallelRun-Page"
"""A page of another site can't send it without asking this server first, which never agrees."""
_MOST_CODES: Final = 1000
_MOST_CHARACTERS: Final = 1024
_FROM: Final = "~"
"""Between the ids of sessions of which each has begun with a code that the one before it asked for."""
_MOST_AFTER_EACH_OTHER: Final = 10
_USED: Final = (
    "This link was used in another browser, or is older than ten minutes. Get another one with "
    "`parallelrun job open ID`, or `parallelrun up` again, or sign in with a token."
)
_SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class SignedIn(NamedTuple):
    token_name: str
    ends: int
    """Seconds since the epoch."""
    session_id: str = ""
    """The ids of the session from which it comes, if it began with a code that a browser asked for, and its own."""


class _Code(NamedTuple):
    """A code that signs in one browser."""

    token_name: str
    ends: int
    until: int
    """Time when the session ends that it begins, at the latest."""
    mac: bytes
    """Made with the token: another one may have its name by now."""
    session_id: str = ""
    """The session that has begun with it; empty: none yet."""
    asked_by: str = ""
    """The session of the browser that has asked for it; empty: none."""


class Sessions:
    """Makes and checks the cookies of one server.

    Args:
        root: the cluster's root folder, where servers note who has signed out.
        clock: seconds since the epoch.
    """

    def __init__(self, token: Token, root: Path, clock: Callable[[], float] = time.time) -> None:
        self.token = token
        self._clock = clock
        self._ended = EndedSessions(root, clock)
        self._lock = Lock()
        self._codes: dict[str, _Code] = {}

    def new_cookie(
        self, name: str, headers: Mapping[bytes, bytes], until: int | None = None, asked_by: str = ""
    ) -> tuple[SignedIn, str]:
        """A session for who has shown the token of this name, and the header that sets its cookie.

        Args:
            until: when it ends at the latest.
            asked_by: the session from which it comes, with whose end it ends, too.
        """
        now = int(self._clock())
        ends = min(now + SESSION_S, now + SESSION_S if until is None else until)
        session = SignedIn(name, ends, f"{asked_by}{_FROM if asked_by else ''}{secrets.token_urlsafe(12)}")
        text = f"{_packed(name.encode())}.{session.ends}.{session.session_id}"
        cookie = f"{text}.{_packed(self._mac(name, text))}"
        return session, _header(headers, cookie, session.ends - now)

    def ended(self, headers: Mapping[bytes, bytes]) -> str:
        """End the session of a request, if it has one, wherever its cookie is shown; returns the header that removes
        the cookie.
        """
        if (session := self.of(headers)) is not None:
            self._ended.add(session.session_id, session.ends)
        return _header(headers, "", 0)

    def of(self, headers: Mapping[bytes, bytes]) -> SignedIn | None:
        """The session of a request; None: it has no cookie, or one that is not valid (any more)."""
        cookie = _cookie_in(headers)
        text, _, signature = cookie.rpartition(".")
        packed, _, rest = text.partition(".")
        ends, _, session_id = rest.partition(".")
        if not (packed and session_id and ends.isascii() and ends.isdecimal()) or int(ends) <= self._clock():
            return None
        name = _unpacked(packed)
        if self.token.secret_of(name) is None or not hmac.compare_digest(
            signature.encode(), _packed(self._mac(name, text)).encode()
        ):
            return None
        return None if self._has_ended(session_id, int(ends)) else SignedIn(name, int(ends), session_id)

    def _has_ended(self, session_id: str, ends: int) -> bool:
        """Return whether a session, or one from which it comes, was signed out. All of them would end at one time."""
        parts = session_id.split(_FROM)
        return any(self._ended.has(_FROM.join(parts[:count]), ends) for count in range(1, len(parts) + 1))

    def admit(self, method: str, headers: Mapping[bytes, bytes]) -> str:
        """The name of the token with which the browser has signed in.

        Raises:
            Unauthorized: it has not.
            Forbidden: the request changes something, and can't be told from one that another site has made.
        """
        session = self.of(headers)
        if session is None:
            raise Unauthorized("A valid token is required: send it as `Authorization: Bearer TOKEN`, or sign in.")
        if method not in _SAFE_METHODS and HEADER.lower().encode() not in headers:
            raise Forbidden(f"With a cookie, a request that changes something needs the header {HEADER}.")
        return session.token_name

    def new_code(self, name: str, headers: Mapping[bytes, bytes]) -> tuple[str, int]:
        """A code that signs in once, with the token of this name, and when it ends.

        Args:
            headers: of who asks for it. With a cookie, one gets no session that lasts longer than the cookie: else it
                could be renewed for ever.

        Raises:
            Forbidden: the session comes of too many others.
        """
        code = secrets.token_urlsafe(18)
        now = int(self._clock())
        session = self.of(headers) if b"authorization" not in headers else None
        asked_by = "" if session is None else session.session_id
        if asked_by.count(_FROM) >= _MOST_AFTER_EACH_OTHER:
            raise Forbidden("This browser was signed in by a long row of links: sign in with a token to make another.")
        until = now + CODE_S + SESSION_S if session is None else session.ends
        ends = min(now + CODE_S, until)
        with self._lock:
            while len(self._codes) >= _MOST_CODES:
                del self._codes[next(iter(self._codes))]
            self._codes[_hash(code)] = _Code(name, ends, until, self._mac(name, code), asked_by=asked_by)
        return code, ends

    def redeemed(self, code: str, headers: Mapping[bytes, bytes]) -> tuple[SignedIn, str]:
        """The session that begins with a code, and the header that sets its cookie; without a header, the session that
        the browser has already.

        Args:
            headers: of the browser.

        Raises:
            Unauthorized: it is no code, has ended, or was used by another browser.
            Conflict: the browser is signed in with another token; the code stays as it is.
        """
        present = self.of(headers)
        with self._lock:
            entry = self._codes.get(_hash(code))
            if entry is None or entry.ends <= self._clock() or not self._is_good(entry, code):
                raise Unauthorized(_USED)
            if present is not None and present.session_id == entry.session_id:
                return present, ""
            if entry.session_id:
                raise Unauthorized(_USED)
            if present is not None and present.token_name != entry.token_name:
                raise Conflict(
                    f"This browser is signed in with the token {present.token_name!r}, and the link is for "
                    f"{entry.token_name!r}. Sign out first, if you want to change that, and open the link again."
                )
            begun, cookie = (present, "") if present is not None else self._begun(entry, headers)
            self._codes[_hash(code)] = entry._replace(session_id=begun.session_id)
        return begun, cookie

    def _is_good(self, entry: _Code, code: str) -> bool:
        """Return whether the token is the one for which a code was made, and who asked for it is still signed in."""
        is_of_its_token = hmac.compare_digest(entry.mac, self._mac(entry.token_name, code))
        return is_of_its_token and not (entry.asked_by and self._has_ended(entry.asked_by, entry.until))

    def _begun(self, entry: _Code, headers: Mapping[bytes, bytes]) -> tuple[SignedIn, str]:
        return self.new_cookie(entry.token_name, headers, entry.until, entry.asked_by)

    def _mac(self, name: str, text: str) -> bytes:
        key = hmac.digest(self.token.secret_of(name) or b"", b"parallelrun session", hashlib.sha256)
        return hmac.digest(key, text.encode(), hashlib.sha256)


def _name_of_cookie(headers: Mapping[bytes, bytes]) -> str:
    """Browsers send the cookies of one port of a machine to all others, so each has a name of its own."""
    port = headers.get(b"host", b"").decode("latin-1").rpartition(":")[2]
    return f"parallelrun-{port if port.isascii() and port.isdecimal() else 'web'}"


def _cookie_in(headers: Mapping[bytes, bytes]) -> str:
    cookies: SimpleCookie = SimpleCookie()
    try:
        cookies.load(headers.get(b"cookie", b"").decode("latin-1"))
    except CookieError:
        return ""
    morsel = cookies.get(_name_of_cookie(headers))
    return morsel.value if morsel is not None and len(morsel.value) <= _MOST_CHARACTERS else ""


def _header(headers: Mapping[bytes, bytes], value: str, seconds: int) -> str:
    is_https = headers.get(b"x-forwarded-proto", b"").lower() == b"https"
    secure = "; Secure" if is_https else ""
    name = _name_of_cookie(headers)
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "replace")).hexdigest()


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _unpacked(text: str) -> str:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return ""
