"""The values of a job's secrets, which only its nodes know: never in the job folder, on Redis, or in a log."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from parallelrun_agent.settings import SECRET_PREFIX, AgentSettings
from parallelrun_core.errors import NotFound, ParallelRunError
from parallelrun_core.paths import open_beneath
from parallelrun_core.spec.secrets import Secret

_MAX_BYTES: Final = 64 << 10
"""One more than twice this could not be an environment variable."""


class SecretMissing(ParallelRunError):
    """A job refers to a secret that this node doesn't have."""


def secret_values(secrets: Mapping[str, Secret], settings: AgentSettings) -> dict[str, str]:
    """The value of each secret on this node, as it is now. A line break at the end of a file doesn't count.

    Raises:
        SecretMissing: one is not here, or is not safe; says what to do.
    """
    return {
        name: _of_environment(name, given.env, settings) if given.env else _of_file(name, given.file, settings)
        for name, given in secrets.items()
    }


def _of_environment(name: str, variable: str, settings: AgentSettings) -> str:
    value = settings.secret_variable(variable)
    if not value:
        where = f"into the environment of its agent, as {SECRET_PREFIX}{variable}"
        raise SecretMissing(f"Secret {name} isn't on node {settings.node}: put it {where}.")
    return value


def _of_file(name: str, file: str, settings: AgentSettings) -> str:
    folder = settings.secrets_dir
    if folder is None:
        what = "give its agent a folder of secrets (--secrets-dir)"
        raise SecretMissing(f"Secret {name} isn't on node {settings.node}: {what}, and put it there as {file}.")
    _check_folder(name, folder, settings)
    try:
        fd = open_beneath(folder, file)
    except NotFound as error:
        where = f"into {folder / file} (no links)"
        raise SecretMissing(f"Secret {name} isn't on node {settings.node}: put it {where}.") from error
    data = _content(fd)
    try:
        value = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        value = ""
    if not value or len(data) > _MAX_BYTES or "\0" in value:
        limit = f"a text in UTF-8 of at most {_MAX_BYTES:,} bytes, not empty and without NUL"
        raise SecretMissing(f"Secret {name} on node {settings.node}: {folder / file} must be {limit}.")
    return value


def _content(fd: int) -> bytes:
    """What is in a file, up to a byte more than is allowed; nothing if it can't be read or is no file."""
    try:
        return os.read(fd, _MAX_BYTES + 1) if stat.S_ISREG(os.fstat(fd).st_mode) else b""
    except OSError:
        return b""
    finally:
        os.close(fd)


def _check_folder(name: str, folder: Path, settings: AgentSettings) -> None:
    try:
        status = folder.stat()
    except OSError as error:
        raise SecretMissing(
            f"Secret {name} isn't on node {settings.node}: its folder of secrets {folder}: {error.strerror}."
        ) from error
    if stat.S_IMODE(status.st_mode) & 0o077 or status.st_uid not in (0, os.geteuid()):
        what = "must belong to the agent's user and be closed to all others (chmod 700)"
        raise SecretMissing(f"Secret {name} on node {settings.node} isn't used: the folder {folder} {what}.")
