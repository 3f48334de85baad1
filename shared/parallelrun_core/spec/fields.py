"""Types of some fields of a job spec: inputs, outputs, and the size of a mini-batch."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from parallelrun_core.described import Strict
from parallelrun_core.names.patterns import ASSET_NAME, JOB_NAME
from parallelrun_core.problems import was_meant
from parallelrun_core.storage.location import datastore_of
from parallelrun_core.storage.supported import supported_path

MAX_PATH: Final = 4096
MAX_JOB_NAME: Final = 128
JobName = Annotated[str, Field(pattern=JOB_NAME)]
"""A label for people. Records of accepted jobs are checked against it, too."""
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FORBIDDEN_IN_FILE_NAME: Final = frozenset('~"#%&*:<>?/\\{|}')
_MAX_NAME_BYTES: Final = 255

_SIZE: Final = re.compile(r"(?P<rows>rows:)?(?P<number>[0-9]+)(?P<suffix>kb|mb|gb)?", re.IGNORECASE)
_FACTORS: Final = {"": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}
_MAX_SIZE: Final = 1 << 40
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_SIZE_FORMS: Final = "must be a whole number, or a string such as '1mb', 'rows:500' or 'auto'"
_LOOSE_SIZE: Final = re.compile(
    r"\s*(\d+)(\.\d+)?\s*(rows?|files?|bytes?|b|[kmg](?:i?b|(?:ilo|ega|iga)bytes?)?)\s*", re.I
)


STORED: Final = "stored"
"""The context in which the record of a job is read: what was accepted by an earlier release is left as it was, for
whoever uses it to refuse."""
MOST_USD: Final = 1e9


def without_nul(value: str) -> str:
    """The string, if it can be passed to the operating system.

    Raises:
        ValueError: it has a NUL character.
    """
    if "\0" in value:
        raise ValueError("must not have a NUL character")
    return value


def checked_file_name(value: str) -> str:
    """The name of a file, without any folder (reference §1.1).

    Raises:
        ValueError: it isn't one.
    """
    if len(value.encode(errors="surrogatepass")) > _MAX_NAME_BYTES:
        raise ValueError(f"a file name must have at most {_MAX_NAME_BYTES} bytes")
    if FORBIDDEN_IN_FILE_NAME.intersection(value) or value in {".", ".."} or any(ord(char) < 32 for char in value):
        raise ValueError(f"must be a plain file name, without any of {' '.join(sorted(FORBIDDEN_IN_FILE_NAME))}")
    return value


def checked_path(value: str, *, is_written: bool = False) -> str:
    """The path of data, in whatever form of a location it was given (`storage/location.py`).

    Raises:
        ValueError: it is in a kind of storage that isn't supported.
    """
    return supported_path(without_nul(value), is_written=is_written)


class Labels(Strict):
    """The fields of a job, and of a pipeline, that tell people about it."""

    name: JobName = "job"
    """A label for people."""
    description: str = Field(default="", max_length=4096)
    """For people."""
    tags: dict[str, str] = Field(default_factory=dict)
    """For people and their tools."""


class Input(Strict):
    """A folder, a file, a glob pattern or a table that the job reads."""

    path: str = Field(min_length=1, max_length=MAX_PATH)
    """Absolute, or relative to the job file. A folder stands for all files below it."""
    type: Literal["uri_folder", "uri_file", "mltable"] = "uri_folder"
    """`mltable`: a folder with an MLTable file, which says what to read and how."""
    mode: Literal["ro_mount", "direct", "download", "eval_mount", "eval_download"] = "ro_mount"
    """`download` and `eval_download`: copied to the node's own disk before `run()`; the others: read in place."""
    transformations: tuple[str | dict[str, Any], ...] = ()
    """Steps as in an MLTable file; with a read step, the files are a table."""
    hidden_files: Literal["", "skip", "read"] = ""
    """The handling of a table's files whose names, or folders, begin with `_` or `.`; empty: as `read`, in a job of an
    earlier release."""
    litter_files: Literal["", "skip", "warn", "read"] = ""
    """The handling of files that are known not to be data, such as `.DS_Store`; `warn`: they are read, and counted in a
    warning. Empty: as `read`, in a job of an earlier release."""
    on_mismatch: Literal["", "keep", "null", "error"] = ""
    """The handling of a value that doesn't fit its column of a text table, whatever the read step says; empty: as it
    says. Columns of other tables have types, so there is no such value."""
    asset: str = Field(default="", max_length=1024)
    """The name of the data or model that this is, `azureml:NAME:VERSION`, as it was when the job was submitted."""
    model: Literal["", "custom_model", "mlflow_model", "triton_model"] = ""
    """The kind of model that this is; empty if it is none."""

    _reachable = field_validator("path")(checked_path)

    @model_validator(mode="after")
    def _mode_fits(self) -> Self:
        if self.mode.startswith("eval_") and self.type != "mltable":
            raise ValueError(f"mode {self.mode!r} applies to inputs of type mltable, not {self.type}")
        if self.mode == "direct" and datastore_of(self.path):
            raise ValueError(
                "mode 'direct' gives a script the URL, and no library opens that of a datastore: give the URL of the "
                "bucket or container itself, or leave out the mode"
            )
        return self


class ValueInput(Strict):
    """A number, a string or a truth value: `${{inputs.NAME}}` is its text."""

    value: bool | int | float | str

    @field_validator("value")
    @classmethod
    def _no_nul_inside(cls, value: bool | int | float | str) -> bool | int | float | str:
        return without_nul(value) if isinstance(value, str) else value


def _kind(entry: object) -> str:
    return "value" if isinstance(entry, ValueInput) or (isinstance(entry, dict) and "value" in entry) else "input"


AnyInput = Annotated[Annotated[Input, Tag("input")] | Annotated[ValueInput, Tag("value")], Discriminator(_kind)]


def by_name(value: object, noun: str) -> object:
    """A mapping, if its keys can be used in `${{inputs.NAME}}`, which ignores letter case.

    Raises:
        ValueError: one can't.
    """
    if not isinstance(value, dict):
        return value
    lower_names: set[str] = set()
    for name in value:
        if not NAME.fullmatch(str(name)):
            raise ValueError(
                f"{name!r} is not a valid {noun} name: use letters, digits and '_', not starting with a digit"
            )
        if str(name).lower() in lower_names:
            raise ValueError(f"{name!r} comes twice: names are compared without letter case")
        lower_names.add(str(name).lower())
    return value


def plain_input(entry: object) -> object:
    """An input that a plain string or value is short for."""
    if isinstance(entry, str):
        return {"path": entry}
    return {"value": entry} if isinstance(entry, bool | int | float) else entry


def plain_outputs(value: object) -> object:
    """Return outputs by their names, each a mapping where a path or nothing was written for it."""
    value = by_name(value, "output")
    if not isinstance(value, dict):
        return value
    return {
        name: {"path": entry} if isinstance(entry, str) else {} if entry is None else entry
        for name, entry in value.items()
    }


class OutputAsset(Strict):
    """A name for what a job has written, once it has completed."""

    name: str = Field(pattern=ASSET_NAME, examples=["scores"])
    version: str = Field(default="", pattern=rf"{ASSET_NAME}|^$")
    """Time when empty, the number after the highest one."""
    type: Literal["uri_folder", "uri_file", "mltable", "custom_model", "mlflow_model", "triton_model"] = "uri_folder"
    """The type of the data or of the model that it becomes."""


class Output(Strict):
    """A folder or a file that the job writes."""

    type: Literal["uri_folder", "uri_file"] = "uri_folder"
    path: str = Field(default="", max_length=MAX_PATH)
    """Absolute, or relative to the job file; when empty, it is in the folder of the outputs, under `file_name`."""
    file_name: str = Field(default="", max_length=255)
    """The name in that folder; when empty, the name of the output."""
    asset: OutputAsset | None = None
    """The data or model that it becomes when the job has completed."""
    has_artifacts: bool = False
    """True if what a command writes to `outputs` of its working folder is in this folder, below `outputs`."""

    _plain_file_name = field_validator("file_name")(checked_file_name)

    @field_validator("path")
    @classmethod
    def _reachable(cls, value: str) -> str:
        return checked_path(value, is_written=True)


@dataclass(frozen=True, slots=True)
class MiniBatchSize:
    """The size of what one `run()` call gets: files, or bytes or rows of a table."""

    number: int | None = None
    """None: the default, which is 10 files or 1 MiB (reference §0)."""
    unit: Literal["plain", "bytes", "rows", "auto"] = "plain"
    """`plain`: files of a file list, bytes of a table; `bytes`: given with a unit, so for tables alone; `auto`: files,
    and the job finds out how many."""

    @property
    def is_auto(self) -> bool:
        return self.unit == "auto"

    @property
    def files(self) -> int:
        return 10 if self.number is None else self.number

    @property
    def bytes(self) -> int:
        return 1 << 20 if self.number is None else self.number

    @classmethod
    def parse(cls, value: int | str | None) -> Self:
        """Read `10`, `"10"`, `"500kb"` (counted in 1024s, any letter case), `"rows:500"` or `"auto"`.

        Raises:
            ValueError: it is none of these.
        """
        if value is None:
            return cls()
        if value == "auto":
            return cls(unit="auto")
        size = _SIZE.fullmatch(str(value)) if not isinstance(value, bool | float) else None
        if size is None and isinstance(value, int) and not isinstance(value, bool):
            raise ValueError("must be greater than or equal to 1")
        if size is None or (size["rows"] and size["suffix"]):
            raise ValueError(_SIZE_FORMS)
        digits = size["number"]
        number = int(digits) * _FACTORS[(size["suffix"] or "").lower()] if len(digits) < 20 else _MAX_SIZE + 1
        if number < 1:
            raise ValueError("must be greater than or equal to 1; leave it out for the default")
        if number > _MAX_SIZE:
            raise ValueError(f"must be less than or equal to {_MAX_SIZE}")
        return cls(number, "rows" if size["rows"] else "bytes" if size["suffix"] else "plain")


def checked_size(value: Any) -> Any:
    """The size of mini-batches, unchanged.

    Raises:
        ValueError: it is none.
    """
    MiniBatchSize.parse(value)
    return value


def size_meant(text: str) -> str:
    """The mini-batch size that was probably meant by a string such as `10 kilobytes`; empty when there is none."""
    if text.strip().lower() in ("auto", "automatic"):
        return "auto"
    size = _LOOSE_SIZE.fullmatch(text)
    if size is None:
        return ""
    unit = size[3][0].lower()
    if size[2]:
        number = int(float(size[1] + size[2]) * 1024)
        return {"m": f"{number}kb", "g": f"{number}mb"}.get(unit, "")
    return f"rows:{size[1]}" if unit == "r" else f"{size[1]}{unit}b" if unit in "kmg" else size[1]


def _mini_batch_size(value: Any) -> int | str | None:
    """Return a size in its plainest form: a number where possible."""
    if value is not None and not isinstance(value, int | float | str):
        raise ValueError(_SIZE_FORMS)
    try:
        size = MiniBatchSize.parse(value)  # type: ignore[arg-type]  # a float is refused there, with the reason
    except ValueError as error:
        context = {"message": str(error), "hint": was_meant(size_meant(str(value)))}
        raise PydanticCustomError("mini_batch_size", "{message}", context) from None
    if size.unit == "rows":
        return f"rows:{size.number}"
    return value.lower() if isinstance(value, str) and not value.isdecimal() else size.number


MiniBatchSizeField = Annotated[int | str | None, BeforeValidator(_mini_batch_size)]


class Budget(Strict):
    """The most that a job may spend."""

    usd: float = Field(gt=0, le=MOST_USD)
    """US dollars."""


def of_type(kind: str | None, value: bool | int | float | str) -> bool | int | float | str:
    """A literal in its declared type: `1e-4`, for example, is a string in YAML 1.1.

    Args:
        kind: `string`, `number`, `integer` or `boolean`; None: the value is returned unchanged.

    Raises:
        ValueError, OverflowError: it isn't of that type.
    """
    match kind, value:
        case ("string", _):
            return str(value)
        case ("boolean", bool()) | (None, _):
            return value
        case ("boolean", str()) if value.lower() in {"true", "false"}:
            return value.lower() == "true"
        case ("boolean", _) | (_, bool()):
            raise ValueError
    if isinstance(value, str):
        value = int(value) if _WHOLE.fullmatch(value) else float(value)
    if not math.isfinite(value) or (kind == "integer" and value != int(value)):
        raise ValueError
    return int(value) if kind == "integer" else value
