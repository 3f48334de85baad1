"""Avro object container files."""

from __future__ import annotations

import msgspec

from parallelrun_core.mltable.options import IGNORED, flag, options_of
from parallelrun_core.mltable.read_step import ReadStep
from parallelrun_core.problems import At


class ReadAvro(ReadStep, tag="read_avro"):
    """Types are those of the schema, which is the same in all files."""

    suffixes = (".avro",)
    libraries = ("pandas", "fastavro")

    schema: str = ""
    """The schema of the first file as JSON, from the beginning of the job on."""

    @classmethod
    def parse(cls, options: object, at: At) -> ReadAvro:
        checked = options_of(options, at, ("include_path_column", *IGNORED))
        return cls(include_path_column=flag(checked, "include_path_column", at), has_exact_integers=True)

    def as_written(self) -> ReadAvro:
        return msgspec.structs.replace(self, schema="")
