"""The bases of how a table is read: each module of `formats` has one such class, as `ReadParquet`."""

from __future__ import annotations

from typing import Any, ClassVar, Final, NamedTuple, Self

import msgspec

from parallelrun_core.mltable.options import flag, one_of
from parallelrun_core.problems import At

UNPACKED_LIMIT: Final = 64 << 20


class Text(NamedTuple):
    """The reading of a table's files that are text."""

    encoding: str
    multi_line: bool = False
    """A quoted field may hold newlines."""
    is_delimited: bool = False
    unpacked_limit: int = UNPACKED_LIMIT
    """Most bytes of a compressed file once it is unpacked."""
    delimiter: str = ","
    has_header: bool = False
    skip_lines: int = 0
    comment: str = ""


TYPED_TEXT: Final = ("on_mismatch", "inference")
"""Names of these options."""
OF_FILES: Final = ("include_path_column", "file_extension")
"""Likewise, of read steps that are given their files by a listing."""


def typed_text(options: dict[str, Any], at: At) -> dict[str, Any]:
    """The options of `TypedText`. A YAML file's `on_mismatch: null` is no text."""
    checked: dict[str, Any] = {
        name: "null" if options[name] is None else options[name] for name in TYPED_TEXT if name in options
    }
    return {
        "on_mismatch": one_of(checked, "on_mismatch", ("keep", "null", "error"), "null", at),
        "inference": one_of(checked, "inference", ("exact", "azure"), "azure", at),
    }


def of_files(options: dict[str, Any], at: At) -> dict[str, Any]:
    """The options of `ReadStep`, as a job that begins now has them. An extension may be written without its dot."""
    extension = options.get("file_extension") or ""
    if at.below("file_extension").is_of(extension, str, "text, such as .csv"):
        extension = f".{extension.removeprefix('.')}" if extension else ""
    return {
        "include_path_column": flag(options, "include_path_column", at),
        "file_extension": extension,
        "has_exact_integers": True,
    }


class ReadStep(msgspec.Struct, kw_only=True, tag_field="step"):
    """A step that makes a table of files, with all of its options. The tag of a subclass is the step's name."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    """The usual endings of such files' names; only for hints."""
    libraries: ClassVar[tuple[str, ...]] = ("pandas",)
    """The libraries that a worker must be able to import."""
    has_fixed_columns: ClassVar[bool] = True
    """The columns of the first files are those of all rows."""
    finds_root: ClassVar[bool] = False
    """The folder of the table becomes known only when the job begins."""

    include_path_column: bool = False
    file_extension: str = ""
    """Files are read whose names end so, in this letter case; empty: all."""
    has_exact_integers: bool = False
    """Whole numbers keep all of their digits. False: the job began in a release that rounded some of them."""

    @property
    def libraries_needed(self) -> tuple[str, ...]:
        """Return which libraries a worker must be able to import with these options."""
        return self.libraries

    @property
    def has_dict_rows(self) -> bool:
        """Return whether run() gets a list of dicts, and no DataFrame."""
        return False

    @property
    def text(self) -> Text | None:
        """Return how its files are read; None if they are not text."""
        return None

    @classmethod
    def parse(cls, options: object, at: At) -> Self:
        """The step as a user wrote it; what is wrong with its options is added to the problems."""
        raise NotImplementedError

    @classmethod
    def name(cls) -> str:
        return str(cls.__struct_config__.tag)

    @classmethod
    def kind(cls) -> str:
        """The kind of table: the name of the module that describes it, here and in each service."""
        return cls.__module__.rpartition(".")[2]

    def with_on_mismatch(self, on_mismatch: str) -> ReadStep:
        """The step with another handling of values that don't fit their column; empty: as it is."""
        return self

    def as_written(self) -> ReadStep:
        """The step without what became known only when a job began."""
        return self


class TypedText(ReadStep, kw_only=True):
    """Options of read steps of texts whose types are inferred from the first rows."""

    on_mismatch: str = "null"
    """The handling of a value that doesn't fit its column: `keep` (it stays a text), `null`, or `error`."""
    inference: str = "azure"
    """`exact`: a column has a type only if its first values, written back, are what stands in the file. `azure`: as
    Azure ML infers types; 007 is 7, and a column of 0 and 1 has truth values."""

    def with_on_mismatch(self, on_mismatch: str) -> ReadStep:
        return msgspec.structs.replace(self, on_mismatch=on_mismatch) if on_mismatch else self
