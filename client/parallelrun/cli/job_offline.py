"""`parallelrun job report|replay`: a job without its server, on one page, or one of its mini-batches again here."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from parallelrun.cli.exit_codes import of_job
from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import say
from parallelrun.cli.server import Client
from parallelrun.progress.text import clean


def report(
    client: Client,
    job_id: JobId,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="Where to write; `-`: stdout.", show_default="ID.html")
    ] = "",
) -> None:
    """Write all that is known about a job into one file. It is HTML, such as for a ticket; prints its path.

    It needs nothing else to be read: no server, no network, no scripts.
    """
    from parallelrun.report.facts import gather
    from parallelrun.report.page import page

    text = page(gather(client, job_id))
    if output == "-":
        sys.stdout.write(text)
        return
    path = Path(output or f"{job_id}.html")
    # Whoever reads the earlier report in the same place never sees half of this one.
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)
    print(path)


def replay(
    client: Client,
    job_id: JobId,
    mini_batch: Annotated[int, typer.Argument(metavar="MINI_BATCH", min=0, help="Its number.", show_default=False)],
    *,
    code: Annotated[Path, typer.Option(metavar="DIR", help="The folder with the entry script.")] = Path(),
    output: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for rows and logs.", show_default="./replay-ID-MINI_BATCH")
    ] = "",
) -> None:
    """Run one mini-batch of a job again on this machine. It is run by the code that is in DIR now, once; the job itself
    stays as it is. The files must have the same paths here."""
    import yaml
    from msgspec.structs import asdict

    from parallelrun.embedded.local_run import RunOptions, run_here
    from parallelrun.errors import NotFound
    from parallelrun.job_file.reading import read_spec
    from parallelrun.job_file.replay import replay_of
    from parallelrun.progress.plain import display_on

    document = client.jobs.document(job_id)
    inputs = client.jobs.inputs_of(job_id, mini_batch)
    content = yaml.safe_load(document.text)
    limits = []
    for limit_name in content.pop("rate_limits", ()):
        try:
            limits.append(asdict(client.limits.get(limit_name)))
        except NotFound:
            say(f"note: the server has no limit {limit_name!r} any more, so the replay keeps to none of that name")
    if limits:
        content["rate_limits"] = [each["name"] for each in limits]
    for name in document.left_out:
        say(f"note: {name} of the job are secret, and not set here: export them if the script needs them")
    with tempfile.TemporaryDirectory(prefix="parallelrun-replay-") as folder:
        content = replay_of(content, inputs, Path(folder), code.resolve())
        end = run_here(
            read_spec({**content, "name": f"replay of {mini_batch}"}),
            RunOptions(folder=output or f"replay-{job_id}-{mini_batch}", processes=1, overwrite=True, limits=limits),
            resume_option=lambda _: "",
            display=display_on(sys.stderr, title=f"mini-batch {mini_batch}"),
        )
    result = end.result
    _print_text(result.logs and result.logs / "user" / "stdout")
    _print_text(result.logs and result.logs / "user" / "error")
    if result.output:
        print(f"output: {result.output}")
    print(f"logs: {result.logs}")
    raise typer.Exit(of_job(result.job, strict=True))


def _print_text(folder: Path | None) -> None:
    for file in sorted(folder.rglob("*.txt")) if folder else ():
        text = file.read_text(encoding="utf-8", errors="replace")
        sys.stdout.write(clean(text, lines=True, most=len(text)))
