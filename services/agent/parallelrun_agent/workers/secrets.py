"""The values of a job's secrets, which only its nodes know: never in the job folder, on Redis, or in a log."""

from __future__ import annotations

from collections.abc import Mapping

from parallelrun_agent.settings import SECRET_PREFIX, AgentSettings
from parallelrun_core.errors import ParallelRunError
from parallelrun_core.service.secret_source import MAX_BYTES, SecretSource, SecretUnavailable, SecretUnusable
from parallelrun_core.spec.secrets import Secret


class SecretMissing(ParallelRunError):
    """A job refers to a secret that this node doesn't have, or can't read.

    Args:
        is_for_now: asked again, it may be there.
    """

    def __init__(self, message: str, *, is_for_now: bool = False) -> None:
        super().__init__(message)
        self.is_for_now = is_for_now


def secret_values(secrets: Mapping[str, Secret], settings: AgentSettings, source: SecretSource) -> dict[str, str]:
    """The value of each secret on this node, as it is now. A line break at the end of a file doesn't count.

    Raises:
        SecretMissing: one is not here, or is not safe; says what to do.
    """
    return {
        name: _of_environment(name, secret.env, settings)
        if secret.env
        else _of_file(name, secret.file, settings.node, source)
        for name, secret in secrets.items()
    }


def _of_environment(name: str, variable: str, settings: AgentSettings) -> str:
    value = settings.secret_variable(variable)
    if not value:
        where = f"into the environment of its agent, as {SECRET_PREFIX}{variable}"
        raise SecretMissing(f"Secret {name} isn't on node {settings.node}: put it {where}.")
    return value


def _of_file(name: str, file: str, node: str, source: SecretSource) -> str:
    try:
        data = source.read(file)
    except SecretUnavailable as error:
        message = f"Secret {name} can't be read on node {node} just now: {error}."
        raise SecretMissing(message, is_for_now=True) from error
    except SecretUnusable as error:
        raise SecretMissing(f"Secret {name} isn't on node {node}: {error}.") from error
    try:
        value = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        value = ""
    if not value or len(data) > MAX_BYTES or "\0" in value:
        limit = f"a text in UTF-8 of at most {MAX_BYTES:,} bytes, not empty and without NUL"
        raise SecretMissing(f"Secret {name} on node {node}: {file} must be {limit}.")
    return value
