"""The names in a container. They come from outside, and become paths only by way of here."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from parallelrun_core.errors import InvalidInput, UnsafePath
from parallelrun_core.untrusted.paths import relative_parts

UPLOADS: Final = "azureml-blobstore"
"""The container of the default datastore: what clients upload, the outputs of jobs, and what is the users' own."""
ARTIFACTS: Final = "azureml"
"""The container of the datastore with the logs of jobs."""
OF_VERSIONS: Final = "code-"
"""What the containers begin with that have the files of one version of an asset each."""
OF_UPLOADS: Final = "LocalUpload/"
"""What the paths of uploads begin with there. All other paths are the users': see `blobstore_of`."""
OF_OUTPUTS: Final = "azureml-outputs/"
OF_CODE: Final = "azureml-code."
"""What the paths of code begin with there, where clients download it, before what tells it from other code."""
OF_LOGS: Final = "ExperimentRun/dcid."
EXECUTION_LOG: Final = "logs/azureml/executionlogs.txt"
"""The log that clients print while they wait for a job: what happened, in order. It is made when it is asked for."""
STDOUT_LOG: Final = "user_logs/std_log.txt"
STDERR_LOG: Final = "user_logs/std_log_stderr.txt"
"""What a command has printed, as clients print it while they wait. Clients follow one log at a time: the second one is
there once the job has ended."""
_CONTAINER: Final = re.compile(r"[a-z0-9](?:-?[a-z0-9]){2,62}")
_MAX_CHARACTERS: Final = 1024
_MAX_DEPTH: Final = 30


def checked_container(name: str) -> str:
    """The name of a container.

    Raises:
        InvalidInput: none can have this name.
    """
    if not _CONTAINER.fullmatch(name):
        raise InvalidInput.at("container", f"{name[:80]!r} is not the name of a container")
    return name


def container_of(kind: str, name: str, version: str) -> str:
    """The container with the files of a version of an asset, if a client uploads them as that version's."""
    return OF_VERSIONS + hashlib.sha256(f"{kind}/{name}/{version}".encode()).hexdigest()[:32]


def checked_blob(name: str) -> str:
    """The name of a blob, as the path below its container, in its one spelling.

    Raises:
        UnsafePath: it leaves the container, or is no path.
        InvalidInput: it is too long or too deep.
    """
    parts = relative_parts(name)
    spelled = "/".join(parts)
    if len(name) > _MAX_CHARACTERS or len(parts) > _MAX_DEPTH:
        raise InvalidInput.at("blob", f"the name has more than {_MAX_CHARACTERS} characters or {_MAX_DEPTH} folders")
    try:
        spelled.encode()
    except UnicodeEncodeError as error:
        raise UnsafePath.at("blob", "the name has halves of characters") from error
    if any(part == "." for part in name.split("/")):
        raise UnsafePath.at("blob", f"{name[:200]!r} is not a path below its folder", "no '.'")
    return spelled
