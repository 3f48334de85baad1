"""`parallelrun tune`: short trials of a job, and the settings with which it ends in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from parallelrun.cli.advise import seconds_of
from parallelrun.cli.job_file_options import Assignments, InputPlaces, JobFile, read_with_options
from parallelrun.cli.output import FormatOption, OutputFormat, say, say_notes, show, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from parallelrun.tuning.trials import Tried
    from parallelrun.tuning.tuning import Tuned


def tune_command(
    job_file: JobFile,
    *,
    target: Annotated[
        str,
        typer.Option(metavar="TIME", help="How long the job may take: 90s, 30m, 1.5h.", show_default="as on one node"),
    ] = "",
    trial: Annotated[str, typer.Option(metavar="TIME", help="How long each trial runs its mini-batches.")] = "30s",
    trials: Annotated[int, typer.Option(min=1, max=20, help="How many trials there are, at most.")] = 4,
    assignments: Assignments = None,
    inputs: InputPlaces = None,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Try a job for a short time, and say which settings fit.

    The script really runs, on this machine, on the first mini-batches of the input; what it writes to its outputs is
    thrown away. How long all of it would take, and on how many nodes, is computed from that.
    """
    from parallelrun.tuning.tuning import tune

    target_s = seconds_of(target) if target else None
    reading = read_with_options(job_file, assignments, inputs)
    say_notes(reading.notes)
    tuned = tune(
        reading,
        target_s=target_s,
        trial_s=seconds_of(trial),
        most_trials=trials,
        on_note=say,
        on_trial=lambda each: say(f"tried {_settings(each)}"),
    )
    settings = (f"{name}={value}" for name, value in tuned.changes.items())
    show(_data(tuned), form, names=settings, lines=_lines(tuned, target))


def _settings(tried: Tried) -> str:
    return " ".join(f"{name}={value}" for name, value in tried.changes.items()) or "the job as it is"


def _lines(tuned: Tuned, target: str) -> Iterator[str]:
    from parallelrun_core.figures import duration

    rows = [
        [
            _settings(each) + (" *" if each is tuned.best else ""),
            f"{each.trial.tried:,} of {'' if each.is_listed else 'at least '}{each.trial.mini_batches:,}",
            duration(each.trial.mini_batch_s),
            f"{each.trial.processes:,}",
            duration(each.trial.seconds(1)),
        ]
        for each in tuned.tried
    ]
    yield from table(["TRIED", "MINI-BATCHES", "MEDIAN", "PROCESSES", "ON ONE NODE"], rows)
    yield ""
    if tuned.nodes is None:
        yield f"No number of nodes makes it end within {target}: at best, it takes {duration(tuned.seconds)}."
    else:
        nodes = f"{tuned.nodes:,} node{'s' if tuned.nodes > 1 else ''} like this machine"
        yield f"On {nodes}, the job would take {duration(tuned.seconds)}."
    if not tuned.best.is_listed:
        yield "Not all of the input was listed when the trials ended, so it takes longer than that."
    yield " ".join(f"--set {name}={value}" for name, value in tuned.changes.items()) or "Nothing to change."


def _data(tuned: Tuned) -> dict[str, object]:
    return {
        "nodes": tuned.nodes,
        "seconds": round(tuned.seconds, 3),
        "set": tuned.changes,
        "tried": [
            {
                "set": dict(each.changes),
                "mini_batches": each.trial.mini_batches,
                "tried": each.trial.tried,
                "is_listed": each.is_listed,
                "mini_batch_s": round(each.trial.mini_batch_s, 6),
                "processes": each.trial.processes,
                "seconds_on_one_node": round(each.trial.seconds(1), 3),
            }
            for each in tuned.tried
        ],
    }
