"""The options of each command that reads a job file, and the reading."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parallelrun.job_file.reading import NamesFor
    from parallelrun_core.intake.reading import Reading

JobFile = Annotated[Path, typer.Argument(metavar="JOB.yml", help="The job file.", show_default=False)]
Assignments = Annotated[
    list[str] | None, typer.Option("--set", metavar="PATH=VALUE", help="Change a field. Can be repeated.")
]
InputPlaces = Annotated[
    list[str] | None,
    typer.Option("--input", metavar="[NAME=]PLACE", help="Where an input is, such as the data of a batch deployment."),
]
Processes = Annotated[
    int | None,
    typer.Option("--processes", "--workers", min=1, help="Workers per node.", show_default="CPUs / nodes"),
]


def read_with_options(
    file: Path, assignments: Sequence[str] | None, inputs: Sequence[str] | None, names: NamesFor | None = None
) -> Reading:
    """Read a job file with what the command line changes in it.

    Args:
        names: resolves the names in it; by default, in what this machine defines.

    Raises:
        InvalidInput: something is wrong with it.
    """
    from parallelrun.job_file.reading import input_assignments, read_job_file
    from parallelrun.resources.names import local_resolver

    return read_job_file(file, [*(assignments or ()), *input_assignments(inputs or ())], names or local_resolver)
