"""`parallelrun admin …` and `parallelrun redis-acl`: for operators."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from parallelrun.cli.exit_codes import ExitCode
from parallelrun.cli.output import FormatOption, OutputFormat, say, show, show_one, table
from parallelrun.cli.server import Client, Commands

if TYPE_CHECKING:
    from parallelrun.models import ClusterUsage, Sweep

admin = Commands(help="Disk usage, retention, backup and restore of a cluster.")

_KINDS = {
    "jobs": "folders of jobs",
    "parts": "  of these, part files",
    "logs": "  of these, logs of workers",
    "snapshots": "snapshots of code",
    "asset_files": "files of assets",
    "asset_versions": "versions of assets",
    "assets": "definitions of assets",
    "steps": "steps for reuse",
    "uploads": "uploaded files",
    "blobs": "default datastore",
}


@admin.command()
def usage(client: Client, form: FormatOption = OutputFormat.TABLE) -> None:
    """Show disk usage. That of the cluster's root folder by kind, and the rules of retention."""
    measured = client.admin.usage()
    show(measured, form, names=measured.bytes, lines=_lines_of_usage(measured))


def _lines_of_usage(measured: ClusterUsage) -> Iterator[str]:
    from parallelrun_core.answers.retention import rule_in_words

    yield from table(
        ["KIND", "BYTES"], [[_KINDS.get(kind, kind), f"{size:,}"] for kind, size in measured.bytes.items()]
    )
    yield f"\nfree: {measured.free_bytes:,} of {measured.total_bytes:,} bytes; {measured.jobs:,} jobs\n"
    largest = [[each.job, f"{each.bytes:,}", each.ended or "runs"] for each in measured.largest]
    yield from table(["LARGEST JOBS", "BYTES", "ENDED"], largest)
    if measured.rules:
        yield "\nrules: " + " ".join(rule_in_words(name, value) for name, value in measured.rules.items() if value)
    if (last := measured.last_sweep) is not None:
        yield f"\nlast sweep, {last.at}:"
        yield from _lines_of_sweep(last)


@admin.command()
def prune(
    client: Client,
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Remove what retention doesn't keep. A master does it at once, not within the hour.

    Jobs that were deleted go, too, though they could still be restored.
    """
    planned = client.admin.prune(dry_run=dry_run)
    show(planned, form, names=planned.removed, lines=_lines_of_sweep(planned))
    if form is OutputFormat.TABLE and not dry_run:
        say("a master removes it now; `parallelrun admin usage` shows when it has done so")


Root = Annotated[Path, typer.Argument(metavar="ROOT", help="The root folder of the cluster.", show_default=False)]


@admin.command()
def backup(
    root: Root,
    target: Annotated[
        Path,
        typer.Argument(metavar="TARGET", help="A folder on another disk; an earlier backup is brought up to date."),
    ],
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Copy the root folder while the cluster runs. The copy is consistent, and durable."""
    from parallelrun_core.backup.copying import back_up

    record = back_up(root, target)
    lines = [
        ("files", f"{record.files:,}, of which {record.copied:,} were copied"),
        ("bytes", f"{record.bytes:,}"),
        ("root", record.root),
        ("release", record.release),
    ]
    show_one(record, form, name=str(target), lines=lines)


@admin.command()
def restore(
    source: Annotated[Path, typer.Argument(metavar="BACKUP", help="The folder of a backup.", show_default=False)],
    root: Root,
    form: FormatOption = OutputFormat.TABLE,
) -> None:
    """Bring a backup back. No service may run there, and Redis must be empty.

    Masters make Redis know all jobs again, and those that had not ended go on.
    """
    from parallelrun_core.backup.copying import restore as bring_back

    root, record = bring_back(source, root)
    show_one(record, form, name=str(root), lines=[("files", f"{record.files:,}"), ("bytes", f"{record.bytes:,}")])
    if record.root != str(root.resolve()):
        say(f"jobs name paths below {record.root}: mount {root} there, or their outputs are not found")


@admin.command()
def verify(root: Root, form: FormatOption = OutputFormat.TABLE) -> None:
    """Read all of a root folder or backup, and compare checksums. The exit code is 3 if something is damaged.

    Documents, logs, the rows of each mini-batch, outputs and snapshots of code; also while the cluster runs.
    """

    from parallelrun_core.backup.copying import data_of
    from parallelrun_core.backup.verifying import Verification
    from parallelrun_core.figures import counted

    verified = Verification(data_of(root)).run()
    kinds = ("document", "log", "segment", "output", "snapshot")
    counts = ", ".join(counted(getattr(verified, f"{kind}s"), kind) for kind in kinds)
    lines = [
        *(f"{each.path}: {each.problem}" for each in verified.findings),
        f"{counts}: {len(verified.findings):,} damaged",
    ]
    facts = {**asdict(verified), "root": str(verified.root)}
    show(facts, form, names=(each.path for each in verified.findings), lines=lines)
    if verified.findings:
        raise typer.Exit(ExitCode.JOB_FAILED)


def _lines_of_sweep(sweep: Sweep) -> Iterator[str]:
    verb = "removed" if sweep.is_applied else "would be removed"
    if not sweep.removed:
        yield f"nothing {verb}"
    else:
        yield from table(
            [verb.upper(), "NUMBER", "BYTES"],
            [
                [_KINDS.get(kind, kind).strip(), f"{each.count:,}", f"{each.bytes:,}"]
                for kind, each in sweep.removed.items()
            ],
        )
    for job_id, at in sorted(sweep.notices.items()):
        yield f"{job_id} goes on {at}"
    for job_id, reason in sorted(sweep.references.items()):
        yield f"{job_id} stays: {reason} refers to it"
    if sweep.not_removed:
        yield f"{sweep.not_removed} folders have files of another user, and can't be removed"
    if sweep.problem:
        yield f"a limit can't be kept: {sweep.problem}"


def redis_acl(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder for the passwords, one file each; those in it are kept.")
    ],
) -> None:
    """Make the services' users for a Redis server. Prints an ACL file, and writes the passwords into files.

    Give each service its own: --redis-secret-file DIR/ROLE/secret.
    """
    from parallelrun_core.store.credentials import prepare

    acl = folder / "users.acl"
    files = prepare(folder, acl)
    print(acl.read_text(), end="")
    for role, path in files.items():
        say(f"parallelrun-{role}:  --redis-secret-file {path}")
