"""Delta tables: the Parquet files of one version."""

from __future__ import annotations

import msgspec

from parallelrun_core.mltable.options import flag, options_of
from parallelrun_core.mltable.read_step import ReadStep
from parallelrun_core.problems import At


class ReadDeltaLake(ReadStep, tag="read_delta_lake"):
    """A version, by its number or as of a time."""

    libraries = ("pandas", "pyarrow")
    finds_root = True

    version: int | None
    """The version that is read, from the beginning of the job on."""
    timestamp: str | None
    columns: list[str] = msgspec.field(default_factory=list)
    """The names of all columns, from the beginning of the job on."""
    partitions: dict[str, str] = msgspec.field(default_factory=dict)
    """The names and types of the columns whose values are in the paths of files, from the beginning of the job on."""
    schema: str = ""
    """Arrow's schema of all columns, in base 64, from the beginning of the job on; empty in jobs of older releases."""

    @classmethod
    def parse(cls, options: object, at: At) -> ReadDeltaLake:
        checked = options_of(options, at, ("timestamp_as_of", "version_as_of", "include_path_column"))
        version, timestamp = checked.get("version_as_of"), checked.get("timestamp_as_of")
        if (version is None) == (timestamp is None):
            at.wrong("must have either version_as_of or timestamp_as_of")
        if version is not None:
            at.below("version_as_of").is_of(version, int, "a version's number")
        return cls(
            version=version,
            timestamp=str(timestamp) if timestamp is not None else None,
            include_path_column=flag(checked, "include_path_column", at),
            has_exact_integers=True,
        )

    def as_written(self) -> ReadDeltaLake:
        version = self.version if self.timestamp is None else None
        return msgspec.structs.replace(self, version=version, columns=[], partitions={}, schema="")
