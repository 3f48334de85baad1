"""The `secrets` of a job: references, whose values only the nodes have (`agent/workers/secrets.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from pydantic import Field, ValidationInfo, field_validator, model_validator

from parallelrun_core.datastores.definition import OF_DATASTORES
from parallelrun_core.described import Strict
from parallelrun_core.spec.expressions import name_of_target
from parallelrun_core.spec.fields import NAME, STORED

_EXPRESSION: Final = re.compile(r"\$\{\{\s*secrets\s*\.([^{}]*)\}\}", re.IGNORECASE)
_FILE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*")

OF_NOTICES: Final = "webhooks"
"""The folder in the masters' folder of secrets with the keys that notices of the end of a job are signed with."""
OF_SERVICES: Final = "parallelrun"
"""The folder with all else that services need for themselves, such as the password of a mail server."""
_NOT_FOR_JOBS: Final = {OF_DATASTORES: "datastores", OF_NOTICES: "notices", OF_SERVICES: "ParallelRun itself"}


def is_for_jobs(name: str) -> bool:
    """Return whether jobs may have a secret, by its name below the folder of secrets: nodes and masters may have one
    source, so a service reads no other ones for itself."""
    return name.partition("/")[0] not in _NOT_FOR_JOBS


class Secret(Strict):
    """The place where a node finds the value of a secret: exactly one of these."""

    env: str = Field(default="", max_length=255)
    """NAME, for the environment variable `PARALLELRUN_SECRET_NAME` of the node's agent."""
    file: str = Field(default="", max_length=1024)
    """A file below the node's folder of secrets (`PARALLELRUN_SECRETS_DIR`): letters, digits, `.`, `_`, `-`, `/`."""

    @field_validator("env")
    @classmethod
    def _variable(cls, value: str) -> str:
        if value and not NAME.fullmatch(value):
            raise ValueError("must have letters, digits and '_', not starting with a digit")
        return value

    @field_validator("file")
    @classmethod
    def _below(cls, value: str, info: ValidationInfo) -> str:
        if value and not _FILE.fullmatch(value):
            raise ValueError("must be a path below the folder of secrets, of letters, digits and . _ -")
        if info.context != STORED and not is_for_jobs(value):  # a job of before goes on
            folder = value.partition("/")[0]
            raise ValueError(f"what is in {folder}/ is for {_NOT_FOR_JOBS[folder]}, and no job can have it")
        return value

    @model_validator(mode="after")
    def _one_place(self) -> Secret:
        if bool(self.env) == bool(self.file):
            raise ValueError("must have either `env: NAME` or `file: PATH`; the value itself does not belong here")
        return self


def named_secrets(value: object) -> object:
    """The `secrets` of a job file, if their keys can be names of environment variables and of `${{secrets.NAME}}`.

    Raises:
        ValueError: one can't.
    """
    if not isinstance(value, dict):
        return value
    for name, part in value.items():
        if not NAME.fullmatch(str(name)):
            raise ValueError(f"{name!r} is not a valid name: use letters, digits and '_', not starting with a digit")
        if isinstance(part, str):
            raise ValueError(f"{name!r} must be a reference, `env: NAME` or `file: PATH`, not the value itself")
    if len({str(name).lower() for name in value}) < len(value):
        raise ValueError("names are compared without letter case, so none may come twice")
    return value


def with_secrets(text: str, secrets: Mapping[str, object], value_of: Callable[[str], str]) -> str:
    """The value of an environment variable with that of each `${{secrets.NAME}}`; other expressions stay.

    Raises:
        ValueError: it refers to a secret that is not there.
    """
    return _EXPRESSION.sub(lambda match: value_of(name_of_target("secrets", match[1].strip(), secrets)), text)
