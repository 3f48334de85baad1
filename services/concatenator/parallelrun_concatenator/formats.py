"""Output formats: the assembler that the output of a job needs."""

from __future__ import annotations

from pathlib import Path

from parallelrun_concatenator.headed import HeadedText
from parallelrun_concatenator.merge import Assembler, Verbatim
from parallelrun_concatenator.parts import PartFiles
from parallelrun_concatenator.segments import SegmentTable
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.row_format import row_format


def assembler_of(spec: JobSpec, target: str, table: SegmentTable, parts: Path) -> tuple[Assembler, list[str]]:
    """The assembler, and what the user should know about its output.

    Raises:
        InvalidInput: the rows can't be put into such a file.
        OSError: a part can't be read.
    """
    opened = PartFiles(parts)
    try:
        match row_format(target, header=spec.append_row_dataframe_header):
            case "headed":
                headed = HeadedText(table.in_order(), opened, spec.append_row_separator)
                return headed, headed.notes
            case "parquet":
                from parallelrun_concatenator.parquet import ParquetFile  # with pyarrow, which most jobs don't need

                file = ParquetFile(table, opened)
                return file, file.notes
            case _:
                return Verbatim(), []
    finally:
        opened.close()
