"""The job spec: every setting of a job, checked once at submission, frozen from then on.

Names and defaults are the reference system's (`run_max_try`, `error_threshold`, …). Load one with
`JobSpec.parse`, which reports every wrong field at once: where, why, and what was probably meant.
"""

from __future__ import annotations

import re
import shlex
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from parallelrun_core.errors import InvalidInput, Problem

_INPUT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BINDING = re.compile(r"\$\{\{\s*inputs\.([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_FORBIDDEN_IN_FILE_NAME: Final = frozenset('~"#%&*:<>?/\\{|}')
_MAX_SECONDS: Final = 259_200
_MAX_NAME_BYTES: Final = 255
_MAX_DOCUMENT_BYTES: Final = 1 << 20

Seconds = Annotated[float, Field(gt=0, le=_MAX_SECONDS)]
Threshold = Annotated[int, Field(ge=-1)]


def without_nul(value: str) -> str:
    """The text, if it can be handed to the operating system.

    Raises:
        ValueError: it holds a NUL.
    """
    if "\0" in value:
        raise ValueError("it holds a NUL character")
    return value


def _at(field: str, message: str) -> PydanticCustomError:
    """What a check of the whole job has against one of its fields."""
    return PydanticCustomError("job", "{message}", {"message": message, "field": field})


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True)


class Input(_Strict):
    """A folder, a file or a glob pattern that the job reads."""

    path: str = Field(min_length=1, max_length=4096)
    """Absolute, or relative to the job file. A folder counts with everything below it."""
    type: Literal["uri_folder", "uri_file"] = "uri_folder"
    mode: Literal["ro_mount", "direct"] = "ro_mount"

    @field_validator("path")
    @classmethod
    def _no_nul_inside(cls, value: str) -> str:
        return without_nul(value)


class JobSpec(_Strict):
    """One parallel job."""

    name: str = Field(default="job", pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,127}$")
    """A label for people."""
    description: str = Field(default="", max_length=4096)
    """For people."""
    tags: dict[str, str] = Field(default_factory=dict)
    """For people and their tools."""

    code: str = Field(default="", max_length=4096)
    """Folder of the entry script; copied when the job is submitted. Left out when the code is sent along as a zip."""
    entry_script: str = Field(min_length=1, max_length=1024)
    """File below `code` with `run(mini_batch)` and, if wanted, `init()` and `shutdown()`."""
    program_arguments: str = Field(default="", max_length=65_536)
    """What the entry script finds in `sys.argv`, quoted as for a shell. `${{inputs.NAME}}` is that input's path."""
    environment_variables: dict[str, str] = Field(default_factory=dict)
    """What the workers find in their environment. The values are shown nowhere."""

    inputs: dict[str, Input] = Field(min_length=1)
    """By name; a plain text is short for `{path: …}`."""
    input_data: tuple[str, ...] = ()
    """Names of the inputs that are cut into mini-batches, one after another. Not needed when there is one input."""
    mini_batch_size: int = Field(default=10, ge=1, le=10_000_000)
    """Files in one `run()` call."""

    output_action: Literal["append_row", "summary_only"] = "append_row"
    """`append_row` gathers what `run()` returns in one file; `summary_only` only counts it."""
    append_row_file_name: str = Field(default="parallel_run_step.txt", min_length=1, max_length=255)
    """Name of the output file."""
    output: str = Field(default="", max_length=4096)
    """Folder for the outputs; the job's own folder when empty."""

    instance_count: int | None = Field(default=None, ge=1, le=100_000)
    """At most so many nodes; every live node, now and later, when not set."""
    max_concurrency_per_instance: int | None = Field(default=None, ge=1, le=4096)
    """Workers on each node; as many as the node has slots when not set."""

    run_invocation_timeout: Seconds = 60
    """Seconds that one `run()` may take."""
    run_max_try: int = Field(default=3, ge=1, le=1_000_000)
    """Tries a mini-batch has before it counts as failed (the reference's `max_retries` + 1)."""
    lost_leases: int = Field(default=10, ge=0, le=1_000_000)
    """Times that a mini-batch may be lost with its node before it counts as failed."""
    first_task_creation_timeout: Seconds = 600
    """Seconds from the job's start to its first mini-batch, and to having the nodes that it asks for."""
    progress_update_timeout: Seconds | None = None
    """Seconds without any progress after which the job fails. By default long enough for every try of a mini-batch."""

    error_threshold: Threshold = -1
    """The job fails when more items than this have failed; -1: never."""
    mini_batch_error_threshold: Threshold = -1
    """The job fails when more mini-batches than this have failed; -1: never."""
    allowed_failed_percent: float = Field(default=100, ge=0, le=100)
    """The job fails when more per cent of its mini-batches have failed; looked at once all are scheduled."""

    speculative_execution: bool = False
    """At the job's tail, start a second delivery of a mini-batch that takes unusually long; the first result counts."""
    look_ahead: bool = True
    """Hand a worker several mini-batches at once while they are short."""
    logging_level: Literal["DEBUG", "INFO", "WARNING"] = "INFO"
    """Level of the entry script's root logger."""

    @classmethod
    def parse(cls, document: object) -> Self:
        """Check a job spec.

        Raises:
            InvalidInput: with one problem for each wrong field.
        """
        if not isinstance(document, dict):
            raise InvalidInput.at("", "a job spec is a mapping of settings", "see docs/job-spec.md")
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise InvalidInput(problems=tuple(_problem(cls, details) for details in error.errors())) from error

    @classmethod
    def parse_text(cls, text: str | bytes) -> Self:
        """Check a job spec that is written as YAML or JSON.

        Raises:
            InvalidInput: it is neither, or a field is wrong.
        """
        return cls.parse(load_document(text))

    @field_validator("inputs", mode="before")
    @classmethod
    def _plain_inputs(cls, value: object) -> object:
        if isinstance(value, str):
            value = {"data": value}
        if not isinstance(value, dict):
            return value
        for name in value:
            if not _INPUT_NAME.fullmatch(str(name)):
                raise ValueError(f"{name!r} is not an input name: letters, digits and '_' only")
        return {name: {"path": given} if isinstance(given, str) else given for name, given in value.items()}

    @field_validator("input_data", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list | tuple):
            return value
        return tuple(_BINDING.sub(r"\1", name) if isinstance(name, str) else name for name in names)

    @field_validator("environment_variables", "tags", mode="after")
    @classmethod
    def _no_nul(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if not name or "=" in name or "\0" in name + text:
                raise ValueError(f"{name!r} can't be the name of a variable, or its value holds a NUL")
        return value

    @field_validator("append_row_file_name")
    @classmethod
    def _plain_file_name(cls, value: str) -> str:
        if len(value.encode(errors="surrogatepass")) > _MAX_NAME_BYTES:
            raise ValueError(f"a file name has at most {_MAX_NAME_BYTES} bytes")
        if _FORBIDDEN_IN_FILE_NAME.intersection(value) or value in {".", ".."} or any(ord(char) < 32 for char in value):
            raise ValueError(f"a plain file name is needed, without any of {' '.join(sorted(_FORBIDDEN_IN_FILE_NAME))}")
        return value

    @field_validator("code", "entry_script", "output", "program_arguments")
    @classmethod
    def _no_nul_inside(cls, value: str) -> str:
        return without_nul(value)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = ", ".join(self.inputs)
        if not self.input_data:
            if len(self.inputs) > 1:
                raise _at("input_data", f"it must say which of the inputs ({names}) is cut into mini-batches")
            object.__setattr__(self, "input_data", tuple(self.inputs))
        for name in self.input_data:
            if name not in self.inputs:
                raise _at("input_data", f"{name!r} is not among inputs ({names})")
        if self.speculative_execution and not self.writes_rows:
            raise _at("speculative_execution", "what a summary_only script writes itself could then be written twice")
        if len(set(self.input_data)) < len(self.input_data):
            raise _at("input_data", "it names an input twice")
        try:
            self.argv()
        except ValueError as error:
            raise _at("program_arguments", str(error)) from error
        return self

    @property
    def writes_rows(self) -> bool:
        return self.output_action == "append_row"

    def data_paths(self) -> list[str]:
        """The paths that are cut into mini-batches, in order."""
        return [self.inputs[name].path for name in self.input_data]

    def argv(self) -> list[str]:
        """`program_arguments`, split as a shell would, with every `${{inputs.NAME}}` replaced by its path."""
        # Bindings may hold spaces inside their braces, so they are closed up before the splitting.
        text = _BINDING.sub(r"${{inputs.\1}}", self.program_arguments)
        return [_BINDING.sub(self._bound, word) for word in shlex.split(text)]

    def _bound(self, match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in self.inputs:
            raise ValueError(f"${{{{inputs.{name}}}}} is not among inputs ({', '.join(self.inputs)})")
        return self.inputs[name].path

    def relative_to(self, folder: Path) -> Self:
        """The same job with relative paths taken from `folder`: that of the job file."""
        return self.model_copy(
            update={
                "code": _absolute(folder, self.code),
                "output": _absolute(folder, self.output),
                "inputs": {
                    name: given.model_copy(update={"path": _absolute(folder, given.path)})
                    for name, given in self.inputs.items()
                },
            }
        )


def load_document(text: str | bytes) -> object:
    """Read YAML or JSON (which is YAML, too) without creating any object but plain ones.

    Raises:
        InvalidInput: it can't be read, with the line.
    """
    if len(text) > _MAX_DOCUMENT_BYTES:
        raise InvalidInput("The job spec is larger than 1 MiB.")
    try:
        return yaml.safe_load(text)
    except Exception as error:  # PyYAML lets through whatever its constructors run into
        raise InvalidInput.at("", f"not readable as YAML or JSON: {error}") from error


def set_field(document: object, assignment: str) -> None:
    """Apply one `path=value` from a command line; the value is read as YAML.

    Raises:
        InvalidInput: no '=', or the path goes through something that is not a mapping.
    """
    path, equals, text = assignment.partition("=")
    if not equals or not path:
        raise InvalidInput.at("--set", f"{assignment!r} is not PATH=VALUE")
    *folders, last = path.split(".")
    for folder in folders:
        if not isinstance(document, dict):
            raise InvalidInput.at("--set", f"{path!r}: nothing below {folder!r} can be set")
        document = document.setdefault(folder, {})
    if not isinstance(document, dict):
        raise InvalidInput.at("--set", f"{path!r}: {last!r} can't be set here")
    document[last] = load_document(text)


def _absolute(folder: Path, path: str) -> str:
    try:
        return str(folder / Path(path).expanduser()) if path else ""
    except RuntimeError as error:
        raise InvalidInput.at("", f"{path!r}: there is no such home folder") from error


def _problem(model: type[BaseModel], details: Any) -> Problem:
    where = [str(part) for part in details["loc"] or [details.get("ctx", {}).get("field", "")] if part]
    pointer = "/".join(["", *where]) if where else ""
    if details["type"] == "extra_forbidden":
        known = list(Input.model_fields if where[:1] == ["inputs"] else model.model_fields)
        close = get_close_matches(where[-1], known, n=1)
        return Problem(pointer=pointer, message="unknown field", hint=f"did you mean {close[0]!r}?" if close else "")
    if details["type"] == "missing":
        return Problem(pointer=pointer, message="this field is required")
    message = str(details["msg"]).removeprefix("Value error, ")
    given = details.get("input")
    if isinstance(given, str | int | float | bool) and where and where[0] != "environment_variables":
        message += f", not {given!r}"
    return Problem(pointer=pointer, message=message[0].lower() + message[1:])
