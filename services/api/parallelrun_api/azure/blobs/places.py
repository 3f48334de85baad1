"""Folders behind containers: an upload, or the artifacts or outputs of a job."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from parallelrun_api.azure.blobs.artifacts import Artifacts, artifacts_of
from parallelrun_api.azure.blobs.joined import JoinedLogs
from parallelrun_api.azure.blobs.names import (
    ARTIFACTS,
    EXECUTION_LOG,
    OF_CODE,
    OF_LOGS,
    OF_OUTPUTS,
    OF_VERSIONS,
    STDERR_LOG,
    STDOUT_LOG,
    UPLOADS,
    checked_blob,
    checked_container,
)
from parallelrun_api.azure.blobs.store import check_is_file
from parallelrun_api.azure.facade import Facade
from parallelrun_api.azure.outputs import output_place, served_output, types_of
from parallelrun_api.views.downloads import Content, OpenFile
from parallelrun_api.views.files import ServedFolder
from parallelrun_core.answers.files import FileEntry
from parallelrun_core.errors import InvalidInput, NotFound, UnsafePath
from parallelrun_core.storage.location import is_url

_JOINED: Final = {
    EXECUTION_LOG: re.compile(r"job_progress_overview\.[^/]*"),
    STDOUT_LOG: re.compile(r"user/stdout/.*"),
    STDERR_LOG: re.compile(r"user/stderr/.*"),
}
"""Logs that are made of others when they are asked for."""


_OUTPUT: Final = re.compile(rf"(?:({OF_OUTPUTS})|(azureml/|dataset/))(?P<job>[^/]+)/(?P<output>[^/]+)/")
"""Where the client lists the files of an output: of one that it was told of, or where some job might have it."""


class BlobPlace(NamedTuple):
    """A folder from which files are served, and what precedes their paths in the container."""

    folder: ServedFolder | Artifacts
    prefix: str


def open_blob(facade: Facade, container: str, blob: str) -> Content:
    """Open what a name in a container stands for.

    Raises:
        NotFound: there is nothing of this name.
        UnsafePath: the name leaves the container.
    """
    place = _of_job(facade, container, blob)
    if place is None:
        return _file(facade.blobs.open(container, blob), blob)
    joined_file = _JOINED.get(blob.removeprefix(place.prefix)) if container == ARTIFACTS else None
    if joined_file is not None:
        return JoinedLogs(
            _logs_of(facade, facade.names.job_id(place.prefix.removeprefix(OF_LOGS).rstrip("/"))), joined_file
        )
    return _file(place.folder.open(blob.removeprefix(place.prefix)), blob)


def _file(fd: int, blob: str) -> OpenFile:
    check_is_file(fd, blob)
    return OpenFile(fd)


def files(facade: Facade, container: str, prefix: str, after: str) -> Iterator[FileEntry]:
    """The files of a container whose names begin with a prefix and come after another name, by name.

    Raises:
        InvalidInput: the client looks there for an output that the job doesn't have, or that is in an object store: an
            empty list would be a download of nothing, without a word.
    """
    _check_output(facade, container, prefix)
    try:
        place = _of_job(facade, container, prefix) or _uploaded(facade, container, prefix)
    except (NotFound, UnsafePath):
        return
    for entry in place.folder.files(after.removeprefix(place.prefix) if after.startswith(place.prefix) else ""):
        name = place.prefix + entry.path
        if name.startswith(prefix) and name > after:
            yield msgspec.structs.replace(entry, path=name)
        elif name > prefix and not name.startswith(prefix):
            return


def _check_output(facade: Facade, container: str, prefix: str) -> None:
    output = _OUTPUT.match(prefix) if container == UPLOADS else None
    if output is None:
        return
    with suppress(NotFound, UnsafePath):
        if output[2] and os.path.lexists(facade.blobs.file(container, checked_blob(output[0]))):
            return
        name = output["job"]
        job_id = facade.names.job_id(name)
        if output[2]:
            names = ", ".join(types_of(facade, job_id, name)) or "none"
            message = f"job {name[:80]} has no output {output['output'][:80]!r}"
            raise InvalidInput.at("/output_name", message, f"its outputs are: {names}")
        place = output_place(facade, name, output["output"])
        if is_url(place):
            message = f"the output {output['output'][:80]!r} is in an object store, at {place}"
            raise InvalidInput.at("/output_name", message, "fetch it from there")


def logs_by_name(facade: Facade, job_id: str, most: int) -> list[str]:
    """The first logs of a job, by name."""
    return [entry.path for entry in islice(_logs_of(facade, job_id).files(), most)]


def _logs_of(facade: Facade, job_id: str) -> ServedFolder:
    folder = facade.context.jobs.folder(job_id)
    folder.record()
    return ServedFolder(anchor=folder.path.parent, beneath=f"{job_id}/logs", names=facade.context.folder_names)


def _uploaded(facade: Facade, container: str, prefix: str) -> BlobPlace:
    folder = prefix.rpartition("/")[0]
    beneath = f"{container}/{folder}" if folder else container
    names = facade.context.folder_names
    served = ServedFolder(anchor=facade.blobs.folder, beneath=beneath, names=names)
    return BlobPlace(served, f"{folder}/" if folder else "")


def _of_job(facade: Facade, container: str, blob: str) -> BlobPlace | None:
    """The artifacts or an output of the job that a name belongs to; None if it belongs to none.

    Raises:
        NotFound: there is no such job, or it has nothing there.
    """
    if container == UPLOADS and blob.startswith(OF_OUTPUTS):
        name, _, rest = blob.removeprefix(OF_OUTPUTS).partition("/")
        output, slash, _ = rest.partition("/")
        if not slash:
            raise NotFound(f"There is no blob {blob[:200]!r}.")
        output_folder = served_output(facade, facade.names.job_id(name), name, output)
        return BlobPlace(output_folder, f"{OF_OUTPUTS}{name}/{output}/")
    if container == UPLOADS and blob.startswith(OF_CODE):
        name = blob.partition("/")[0]
        beneath = checked_container(OF_VERSIONS + name.removeprefix(OF_CODE))
        folder = ServedFolder(anchor=facade.blobs.folder, beneath=beneath, names=facade.context.folder_names)
        return BlobPlace(folder, f"{name}/")
    if container != ARTIFACTS:
        return None
    name = blob.removeprefix(OF_LOGS).partition("/")[0]
    if not blob.startswith(OF_LOGS):
        raise NotFound(f"There is no blob {blob[:200]!r}.")
    return BlobPlace(artifacts_of(facade, facade.names.job_id(name)), f"{OF_LOGS}{name}/")
