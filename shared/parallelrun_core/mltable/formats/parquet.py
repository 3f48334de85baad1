"""Parquet files."""

from __future__ import annotations

from parallelrun_core.mltable.options import IGNORED, flag, options_of
from parallelrun_core.mltable.read_step import ReadStep
from parallelrun_core.problems import At


class ReadParquet(ReadStep, tag="read_parquet"):
    """Types are those of the files."""

    suffixes = (".parquet",)
    libraries = ("pandas", "pyarrow")

    @classmethod
    def parse(cls, options: object, at: At) -> ReadParquet:
        checked = options_of(options, at, ("include_path_column", *IGNORED))
        return cls(include_path_column=flag(checked, "include_path_column", at), has_exact_integers=True)
