"""Users' data in folders and object stores, as they answer this machine with the credentials that it has."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from typing import Final

from parallelrun_core.errors import Conflict, InvalidInput, Problem
from parallelrun_core.storage.interface import PathProblem
from parallelrun_core.storage.location import is_url, location_of
from parallelrun_core.storage.path_rule import PathRule
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.storage.supported import supported_path
from parallelrun_core.wire.finding import Finding, bad, ok, warn

_HOW: Final = "docs/storage.md says what credentials are looked for, and what they must be allowed"
_HOW_HERE: Final = "mount it there under this path, or mend what its users may do"
_NAME: Final = ".parallelrun-doctor"


def refusals(paths: Sequence[str], rule: PathRule) -> Iterator[Problem]:
    for number, path in enumerate(paths):
        try:
            location = location_of(supported_path(path)).path
            trouble = storage_of(location).place_trouble(location, rule)
        except (OSError, ValueError) as error:
            trouble = PathProblem(str(error))
        if trouble is not None:
            yield Problem(pointer=f"/paths/{number}", message=trouble.message, hint=trouble.hint)


def readable(name: str, path: str) -> Finding:
    """Return whether an input can be listed, and its first object read."""
    storage = storage_of(path)
    try:
        folder, names = next(iter(storage.files(path)), (b"", []))
        if not names:
            return bad(f"{name}: {path} can be asked for, and has no objects", "mend the URL, or put objects there")
        if not (is_url(path) or stat.S_ISREG(os.stat(folder + b"/" + names[0]).st_mode)):
            return bad(f"{name}: {path} is neither a file nor a folder", "give one with data")
        with storage.open(folder + b"/" + names[0]) as first:
            first.read(1)
    except (OSError, ValueError, InvalidInput) as error:
        return bad(f"{name}: {path}: {_words(error)}", _HOW if is_url(path) else _HOW_HERE)
    return ok(f"{name}: {path} can be listed and read")


def writable(name: str, folder: str) -> Iterator[Finding]:
    """Return whether objects can be written there, without replacing what is there. What it writes, it removes."""
    url = f"{folder.rstrip('/')}/{_NAME}-{secrets.token_hex(6)}"
    try:
        _write(url, "doctor")
    except (OSError, ValueError) as error:
        yield bad(f"{name}: {folder} can't be written: {_words(error)}", _HOW)
        return
    yield ok(f"{name}: {folder} can be written")
    try:
        _write(url, "somebody-else")
        yield bad(
            f"{name}: this store replaces objects though it is asked not to",
            "a job could replace what others have written: use a store with conditional writes (If-None-Match)",
        )
    except Conflict:
        yield ok(f"{name}: what others have written there is not replaced")
    except (OSError, ValueError) as error:
        yield bad(f"{name}: it can't be asked not to replace an object: {_words(error)}", _HOW)
    try:
        _remove(url)
    except (OSError, ValueError) as error:
        yield warn(f"{name}: {url} could not be removed: {_words(error)}", "remove it, or allow to delete objects")


def _write(url: str, owner: str) -> None:
    with storage_of(url).create(url, owner) as new:
        new.write(memoryview(b"of `parallelrun doctor`"))
        new.sync()
        new.publish(())


def _remove(url: str) -> None:
    import obstore

    from parallelrun_core.storage.objects.address import address_of
    from parallelrun_core.storage.objects.clients import client_of
    from parallelrun_core.storage.objects.trouble import in_plain_words

    address = address_of(url)
    with in_plain_words(url):
        obstore.delete(client_of(address.store), address.key)


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
