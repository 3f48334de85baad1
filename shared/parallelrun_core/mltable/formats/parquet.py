"""Parquet files."""

from __future__ import annotations

from parallelrun_core.mltable.options import IGNORED, options_of
from parallelrun_core.mltable.read_step import OF_FILES, ReadStep, of_files
from parallelrun_core.problems import At


class ReadParquet(ReadStep, tag="read_parquet"):
    """Types are those of the files."""

    suffixes = (".parquet",)
    libraries = ("pandas", "pyarrow")

    @classmethod
    def parse(cls, options: object, at: At) -> ReadParquet:
        checked = options_of(options, at, (*OF_FILES, *IGNORED))
        return cls(**of_files(checked, at))
