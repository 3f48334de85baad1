"""Avro object container files."""

from __future__ import annotations

import msgspec

from parallelrun_core.mltable.options import IGNORED, options_of
from parallelrun_core.mltable.read_step import OF_FILES, ReadStep, of_files
from parallelrun_core.problems import At


class ReadAvro(ReadStep, tag="read_avro"):
    """Types are those of the schema, which is the same in all files."""

    suffixes = (".avro",)
    libraries = ("pandas", "fastavro")

    schema: str = ""
    """The schema of the first file as JSON, from the beginning of the job on."""

    @classmethod
    def parse(cls, options: object, at: At) -> ReadAvro:
        checked = options_of(options, at, (*OF_FILES, *IGNORED))
        return cls(**of_files(checked, at))

    def as_written(self) -> ReadAvro:
        return msgspec.structs.replace(self, schema="")
