"""What all read steps have in common: the base of the class `Read` in each module of `formats`."""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple, Self

import msgspec

from parallelrun_core.problems import At

UNPACKED_LIMIT: Final = 64 << 20


class Text(NamedTuple):
    """How the files of a table are read that are text."""

    encoding: str
    multi_line: bool = False
    """A quoted field may hold newlines."""
    may_have_header: bool = False
    unpacked_limit: int = UNPACKED_LIMIT
    """Most bytes of a compressed file once it is unpacked."""


class ReadStep(msgspec.Struct, kw_only=True, tag_field="step"):
    """A step that makes a table of files, with all of its options. The tag of a subclass is the step's name."""

    suffixes: ClassVar[tuple[str, ...]] = ()
    """How the names of such files usually end; only for hints."""
    libraries: ClassVar[tuple[str, ...]] = ("pandas",)
    """What a worker must be able to import."""
    has_fixed_columns: ClassVar[bool] = True
    """The columns of the first files are those of all rows."""
    finds_root: ClassVar[bool] = False
    """The folder of the table becomes known only when the job begins."""

    include_path_column: bool = False

    @property
    def text(self) -> Text | None:
        """How its files are read; None if they are not text."""
        return None

    @classmethod
    def parse(cls, options: object, at: At) -> Self:
        """The step as a user wrote it; what is wrong with its options is added to the problems."""
        raise NotImplementedError

    @classmethod
    def name(cls) -> str:
        """As it is written in a file."""
        return str(cls.__struct_config__.tag)

    @classmethod
    def kind(cls) -> str:
        """The kind of table: the name of the module that describes it, here and in each service."""
        return cls.__module__.rpartition(".")[2]

    def as_written(self) -> ReadStep:
        """The step without what became known only when a job began."""
        return self
