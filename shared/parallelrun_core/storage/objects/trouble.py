"""Answers of stores as the errors that files have: whoever reads users' data knows those."""

from __future__ import annotations

import errno
import re
from functools import cache
from types import TracebackType
from typing import Final

from parallelrun_core.errors import Conflict
from parallelrun_core.storage.interface import Replaced
from parallelrun_core.storage.objects.redirects import LED_AWAY, is_led_away

_STATUS: Final = re.compile(r"status code: (\d{3})")
_WORDS: Final = re.compile(r"<(Code|Message)>([^<]*)</\1>")
_NO_TOKEN: Final = re.compile(r"token request|//169\.254\.169\.254|//metadata\.google")
_NO_CREDENTIALS: Final = (
    "there are no credentials for this store here, and this machine has no role that gives some: set them in the "
    "environment, or name a datastore with a secret (docs/storage.md, Credentials)"
)
_MAX_WORDS: Final = 300
_REFUSED: Final = (
    "the store refuses the credentials that this machine has for it (HTTP 403): they are wrong or expired, or may not "
    "do this (docs/storage.md, Credentials)"
)
_BUILDER_ERROR: Final = "builder error"
UNENCRYPTED: Final = "plain http is for this machine only: use https, or set AWS_ALLOW_HTTP=true where it runs"
_NO_ANSWER: Final = re.compile(r"Error performing \w+ (https?://[^/\s]+).*HTTP error: ([^\n]*)", re.DOTALL)
_NOTHING: Final = "there is no such object"
_NOT_BY_NAME: Final = (
    "it was listed: either it was removed since then, or its key ends in '/', as no file's can; then rename that "
    "object, or leave it out by a pattern"
)
_NO_PATH: Final = re.compile(r"Encountered object with invalid path: (.*?)(?:\n\nDebug source|\Z)", re.DOTALL)
_NO_STORE: Final = re.compile(
    r"[Ii]nvalid (?:list|XML) response|Error (?:getting|parsing) list response", re.IGNORECASE
)
NOT_A_STORE: Final = (
    "what answers there is no object store, but perhaps a console's port or a page to sign in: check the endpoint "
    "(AWS_ENDPOINT_URL, or that of the datastore)"
)
_FOR_GOOD: Final = re.compile(r"status code: 4(?!08|29)\d\d")
"""It says what is wrong with the request, which another one would not change."""


class StoreError(OSError):
    """A store didn't do what it was asked. `strerror` has its own words, `filename` the URL."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class StoreAway(StoreError):
    """Raised when a store didn't answer in time, or had too much to do: it may be asked again later."""


class Throttled(StoreAway):
    """Raised when a store said that it has too much to do."""


class Missing(StoreError, FileNotFoundError):
    """There is no such object, or no such bucket."""


class AccessDenied(StoreError, PermissionError):
    """These credentials may not do this, or there are none."""


class NameTaken(StoreError, FileExistsError):
    """There is an object of that name."""


_BY_STATUS: Final[dict[str, type[OSError]]] = {
    "401": AccessDenied, "403": AccessDenied,
    "404": Missing,
    "412": Replaced,  # when the library asks for the rest of an answer that was cut off
    "429": Throttled, "503": Throttled,
}  # fmt: skip
_ERRNO: Final[dict[type[OSError], int]] = {
    Replaced: errno.ESTALE, NameTaken: errno.EEXIST, AccessDenied: errno.EACCES, Missing: errno.ENOENT,
}  # fmt: skip
_OTHERWISE: Final[dict[type[OSError], str]] = {AccessDenied: _REFUSED, Missing: _NOTHING}
"""What is said where the store says nothing."""


class in_plain_words:
    """`with in_plain_words(url):` raises what obstore raises as one of the errors above, with the store's words.

    A class, as it is there once for each object: a generator would take a hundredth of what an object costs.

    Args:
        is_listed: the object is in a listing.

    Raises:
        StoreError: the store refused, or didn't answer in time.
        Replaced: it has another version.
    """

    __slots__ = ("_is_listed", "_url")

    def __init__(self, url: str, *, is_listed: bool = False) -> None:
        self._url = url
        self._is_listed = is_listed

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        is_foreign = error is not None and not isinstance(error, StoreError | Replaced)
        translated = _store_error(error, self._url) if is_foreign and error is not None else None
        if self._is_listed and isinstance(translated, Missing):
            translated = Missing(translated.errno, f"{translated.strerror}; {_NOT_BY_NAME}", self._url)
        if translated is not None:
            try:
                raise translated from error
            finally:
                del translated  # or it would keep this frame, and that of whoever asked, until the next collection


def _store_error(error: BaseException, url: str) -> OSError | None:
    """Return what a store's error is here; None if it is none of a store."""
    from obstore.exceptions import BaseError

    kind = next((error_type for kinds, error_type in _by_kind() if isinstance(error, kinds)), None)
    text = str(error)
    if isinstance(error, BaseError) and (key := _NO_PATH.search(text)):
        return StoreError(errno.EINVAL, _key_without_path(key[1]), url)
    if isinstance(error, BaseError) and _NO_STORE.search(text):
        return StoreError(errno.EPROTO, NOT_A_STORE, url)
    if kind is None:
        if not isinstance(error, BaseError):
            return None
        if is_led_away(text) or _NO_TOKEN.search(text):
            no_credentials = f"{_NO_CREDENTIALS}: {_words(error)[: _MAX_WORDS // 2]}"
            return AccessDenied(errno.EACCES, LED_AWAY if is_led_away(text) else no_credentials, url)
        if _BUILDER_ERROR in text:
            return StoreError(errno.EPROTONOSUPPORT, UNENCRYPTED, url)
        status = _STATUS.search(text)
        kind = _BY_STATUS.get(status[1] if status else "", StoreError if _FOR_GOOD.search(text) else StoreAway)
    return kind(_ERRNO.get(kind, errno.EIO), _words(error, _OTHERWISE.get(kind) or _unreachable(text)), url)


def _key_without_path(why: str) -> str:
    """Return what is to be said of a key that no file here can have as its path."""
    printable = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in why[:_MAX_WORDS])
    return (
        f"the store has a key there that can't be the path of a file ({printable}): rename that object, or name "
        "folders or objects beside it, each as an input of its own"
    )


@cache
def _by_kind() -> tuple[tuple[tuple[type[BaseException], ...], type[OSError]], ...]:
    """Return what the library tells apart by itself. What it takes for other errors is told apart by the store's
    status."""
    from obstore import exceptions as of_store

    return (
        ((of_store.PreconditionError, of_store.NotModifiedError), Replaced),
        ((of_store.AlreadyExistsError,), NameTaken),
        ((of_store.PermissionDeniedError, of_store.UnauthenticatedError), AccessDenied),
        ((FileNotFoundError,), Missing),
        (
            (of_store.NotSupportedError, of_store.InvalidPathError, of_store.UnknownConfigurationKeyError),
            StoreError,
        ),
    )


def _unreachable(text: str) -> str:
    """Return what is to be said of a server that didn't answer; empty if it did."""
    if _STATUS.search(text) or (match := _NO_ANSWER.search(text)) is None:
        return ""
    return f"{match[1]} can't be reached ({match[2][:_MAX_WORDS]}): is it the right endpoint, and up?"


def _words(error: BaseException, otherwise: str = "") -> str:
    """Return what the store itself said, if it said something; else these words, or the first line of what the library
    says.

    A store says nothing where it is only asked for what it knows of an object.
    """
    text = str(error)
    status = _STATUS.search(text)
    facts = dict(reversed(_WORDS.findall(text)))  # the first of each counts
    if not facts:
        return otherwise or text.partition("\n")[0][:_MAX_WORDS]
    words = ": ".join(facts[name] for name in ("Code", "Message") if name in facts)
    return f"{words[:_MAX_WORDS]} (HTTP {status[1]})" if status else words[:_MAX_WORDS]


def name_taken(url: str) -> Conflict:
    """The error, in the same words for every store."""
    return Conflict(
        f"{url!r} is an object that this job has not made, and existing objects are never overwritten. The rows are "
        "kept: remove that object, then resume the job."
    )
