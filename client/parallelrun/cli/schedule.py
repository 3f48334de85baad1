"""`parallelrun schedule …`"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parallelrun.cli import completion
from parallelrun.cli.definitions import add_delete, add_list
from parallelrun.cli.job_follow import follow_job
from parallelrun.cli.output import FormatOption, OutputFormat, say, say_notes, show_change, show_one
from parallelrun.cli.server import Client, Commands

if TYPE_CHECKING:
    from parallelrun.models import Fire, Schedule

schedule = Commands(lambda client: client.schedules, help="Jobs that a server creates at set times.")

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, autocompletion=completion.schedules)]


@schedule.command()
def create(
    client: Client,
    *,
    file: Annotated[Path, typer.Option("--file", "-f", help="The document, as YAML or JSON.", show_default=False)],
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Define a schedule, or define it anew, and print its name."""
    created = client.schedules.create(file)
    say_notes(created.job.notes)
    show_change(created, form, name=created.name)
    say(f"next: {_next(created)}")


def _due(schedule: Schedule) -> str:
    """Return when a schedule is due, for people; an older server says it by the trigger alone."""
    if not schedule.due:
        from parallelrun.errors import ParallelRunError
        from parallelrun_core.schedules.trigger import described, parsed_trigger

        with suppress(ParallelRunError, ValueError):  # of a kind that isn't known here
            return described(parsed_trigger(schedule.trigger))
    return schedule.due


add_list(
    schedule,
    "List all schedules.",
    [
        "name",
        ("ENABLED", lambda each: "yes" if each.enabled else "no"),
        ("TRIGGER", _due),
        ("NEXT", lambda each: each.next[0] if each.next else None),
        ("LAST", lambda each: each.last and each.last.due),
        ("OUTCOME", lambda each: each.last and each.last.outcome),
    ],
)


@schedule.command()
def show(
    client: Client,
    name: Name,
    history: Annotated[int, typer.Option(min=0, max=1000, metavar="N", help="How many last times, in a table.")] = 10,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show one schedule. With what became of the last times at which it was due."""
    definition = client.schedules.get(name)
    fires = list(client.schedules.history(name, limit=history)) if history and form is OutputFormat.TABLE else []
    lines = [
        ("name", definition.name),
        ("description", definition.description),
        ("enabled", "yes" if definition.enabled else "no"),
        ("trigger", _due(definition)),
        ("missed runs", definition.missed_runs),
        ("overlap", "allowed" if definition.allow_overlap else "not allowed"),
        ("job", f"{definition.job.name} ({definition.job.type})"),
        ("next", "\n".join(definition.next)),
        ("last", "\n".join(map(_line_of, fires))),
        ("notes", "\n".join(definition.job.notes)),
    ]
    show_one(definition, form, name=definition.name, lines=lines)


@schedule.command()
def enable(client: Client, name: Name) -> None:
    """Make its jobs again when they are due. What was due meanwhile is not made up."""
    say(f"next: {_next(client.schedules.enable(name))}")


@schedule.command()
def disable(client: Client, name: Name) -> None:
    """Make no more jobs for now. Those that it has made go on."""
    client.schedules.disable(name)


@schedule.command()
def trigger(
    client: Client,
    name: Name,
    follow: Annotated[bool, typer.Option("--stream", help="Follow the job until it ends.")] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Make one of its jobs now, and print the job's id."""
    job = client.schedules.trigger(name)
    show_change(job, form, name=job.id)
    if follow:
        raise typer.Exit(follow_job(client, job))


def _next(schedule: Schedule) -> str:
    return ", ".join(schedule.next[:3]) or ("never" if schedule.enabled else "it is disabled")


def _line_of(fire: Fire) -> str:
    passed = f", {fire.passed_over:,} before it passed over" if fire.passed_over else ""
    return f"{fire.due} {fire.outcome} {fire.job_id or fire.why}{passed}"


add_delete(schedule, "Forget a schedule and its history. Its jobs stay.", completion.schedules)
