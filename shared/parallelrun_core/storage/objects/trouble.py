"""What a store answers, as the errors that files have: whoever reads users' data knows those."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from parallelrun_core.storage.interface import Replaced

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
_UNENCRYPTED: Final = "builder error"
_ONLY_HERE: Final = "plain http is for this machine only: use https, or set AWS_ALLOW_HTTP=true where it runs"
_NO_ANSWER: Final = re.compile(r"Error performing \w+ (https?://[^/\s]+).*HTTP error: ([^\n]*)", re.DOTALL)
_NOTHING: Final = "there is no such object"
_FORBIDDEN: Final = frozenset({"401", "403"})
_NOT_FOUND: Final = "404"
_TOO_MUCH: Final = frozenset({"429", "503"})
_NOT_THAT_ONE: Final = "412"
_FOR_GOOD: Final = re.compile(r"status code: 4(?!08|29)\d\d")
"""It says what is wrong with the request, which another one would not change."""


class StoreError(OSError):
    """A store didn't do what it was asked. `strerror` has its own words, `filename` the URL."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


class StoreAway(StoreError):
    """It didn't answer in time, or had too much to do: it may be asked again later."""


class Throttled(StoreAway):
    """It said that it has too much to do."""


class Missing(StoreError, FileNotFoundError):
    """There is no such object, or no such bucket."""


class NotAllowed(StoreError, PermissionError):
    """These credentials may not do this, or there are none."""


class Taken(StoreError, FileExistsError):
    """There is an object of that name."""


@contextmanager
def in_plain_words(url: str) -> Iterator[None]:
    """Raise what obstore raises as one of the errors above, with the URL and the store's words.

    Raises:
        StoreError: the store refused, or didn't answer in time.
    """
    from obstore import exceptions as of_store

    try:
        yield
    except (of_store.PreconditionError, of_store.NotModifiedError) as error:
        raise Replaced(errno.ESTALE, _words(error), url) from error
    except of_store.AlreadyExistsError as error:
        raise Taken(errno.EEXIST, _words(error), url) from error
    except (of_store.PermissionDeniedError, of_store.UnauthenticatedError) as error:
        raise NotAllowed(errno.EACCES, _words(error, _REFUSED), url) from error
    except FileNotFoundError as error:
        raise Missing(errno.ENOENT, _words(error, _NOTHING), url) from error
    except of_store.BaseError as error:
        if _NO_TOKEN.search(str(error)):
            raise NotAllowed(errno.EACCES, f"{_NO_CREDENTIALS}: {_words(error)[: _MAX_WORDS // 2]}", url) from error
        status = _STATUS.search(str(error))
        if status and status[1] in _FORBIDDEN:
            raise NotAllowed(errno.EACCES, _words(error, _REFUSED), url) from error
        if status and status[1] == _NOT_FOUND:
            raise Missing(errno.ENOENT, _words(error, _NOTHING), url) from error
        if status and status[1] == _NOT_THAT_ONE:  # when the library asks for the rest of an answer that was cut off
            raise Replaced(errno.ESTALE, _words(error), url) from error
        if _UNENCRYPTED in str(error):
            raise StoreError(errno.EPROTONOSUPPORT, _ONLY_HERE, url) from error
        if status and status[1] in _TOO_MUCH:
            raise Throttled(errno.EIO, _words(error), url) from error
        never = (of_store.NotSupportedError, of_store.InvalidPathError, of_store.UnknownConfigurationKeyError)
        kind = StoreError if isinstance(error, never) or _FOR_GOOD.search(str(error)) else StoreAway
        raise kind(errno.EIO, _words(error, _unreachable(str(error))), url) from error


def _unreachable(text: str) -> str:
    """What is to be said of a server that didn't answer; empty if it did."""
    if _STATUS.search(text) or (given := _NO_ANSWER.search(text)) is None:
        return ""
    return f"{given[1]} can't be reached ({given[2][:_MAX_WORDS]}): is it the right endpoint, and up?"


def _words(error: BaseException, otherwise: str = "") -> str:
    """What the store itself said, if it said something; else these words, or the first line of what the library says.

    A store says nothing where it is only asked for what it knows of an object.
    """
    text = str(error)
    status = _STATUS.search(text)
    said = dict(reversed(_WORDS.findall(text)))  # the first of each counts
    if not said:
        return otherwise or text.partition("\n")[0][:_MAX_WORDS]
    words = ": ".join(said[name] for name in ("Code", "Message") if name in said)
    return f"{words[:_MAX_WORDS]} (HTTP {status[1]})" if status else words[:_MAX_WORDS]
