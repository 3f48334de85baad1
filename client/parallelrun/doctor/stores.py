"""The object stores that a job names, as they answer this machine with the credentials that it has."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from parallelrun.doctor.finding import Check, Finding, Place, bad, ok, warn
from parallelrun_core.errors import Conflict, InvalidInput
from parallelrun_core.spec import JobSpec
from parallelrun_core.storage.location import is_url
from parallelrun_core.storage.stores import storage_of

_HOW: Final = "docs/storage.md says what credentials are looked for, and what they must be allowed"
_NAME: Final = ".parallelrun-doctor"


def inputs(place: Place) -> Iterator[Finding]:
    """Whether inputs in stores can be listed and read."""
    spec = _spec(place)
    for name, given in spec.input_paths() if spec else ():
        if is_url(given.path):
            yield _readable(f"input {name}", given.path)


def outputs(place: Place) -> Iterator[Finding]:
    """Whether outputs in stores can be written, without replacing what is there. What it writes, it removes."""
    spec = _spec(place)
    if spec is None:
        return
    named = [("output", spec.output, False)]
    named += [(f"outputs.{name}", each.path, each.type == "uri_file") for name, each in spec.outputs.items()]
    for name, path, is_file in named:
        if path and is_url(path) and not storage_of(path).output_trouble(path, is_file=is_file):
            yield from _writable(name, path.rpartition("/")[0] if is_file else path)


def _readable(name: str, path: str) -> Finding:
    storage = storage_of(path)
    try:
        folder, names = next(iter(storage.files(path)), (b"", []))
        if not names:
            return bad(f"{name}: {path} can be asked for, and has no objects", "mend the URL, or put objects there")
        with storage.open(folder + b"/" + names[0]) as first:
            first.read(1)
    except (OSError, ValueError, InvalidInput) as error:
        return bad(f"{name}: {path}: {_words(error)}", _HOW)
    return ok(f"{name}: {path} can be listed and read")


def _writable(name: str, folder: str) -> Iterator[Finding]:
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


def _spec(place: Place) -> JobSpec | None:
    """The job; None if there is none, or it can't be read, which `job` says."""
    from parallelrun.embedded import datastores
    from parallelrun.names import own_names
    from parallelrun.spec_file import read_job_file

    os.environ.setdefault("AWS_METADATA_SERVICE_NUM_ATTEMPTS", "1")  # an answer is wanted within seconds
    datastores.use()
    if place.job_file is not None:
        with suppress(InvalidInput):
            return read_job_file(place.job_file, names=own_names).job
    return None


CHECKS: Final[tuple[Check, ...]] = (inputs, outputs)
