"""Formats of the output: a module for each whose segments aren't just copied one after the other, named as in
core/wire/row_formats, with its `assembler`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from parallelrun_concatenator.merge import Assembler, Verbatim
from parallelrun_concatenator.parts import PartFiles
from parallelrun_concatenator.segments import SegmentTable
from parallelrun_core.spec import JobSpec
from parallelrun_core.wire.row_formats import row_format


def assembler_of(spec: JobSpec, target: str, table: SegmentTable, parts: Path) -> Assembler:
    """The assembler that the output of a job needs.

    Raises:
        InvalidInput: the rows can't be put into such a file.
        OSError: a part can't be read.
    """
    name = row_format(target)
    if name not in {module.name for module in iter_modules(__path__)}:
        return Verbatim()
    opened = PartFiles(parts)
    try:
        assembler: Assembler = import_module(f"{__name__}.{name}").assembler(spec, table, opened)
    finally:
        opened.close()
    return assembler
