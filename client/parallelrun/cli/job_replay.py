"""`parallelrun job replay`: one mini-batch of a job, run again on this machine."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from parallelrun.cli.exit_codes import of_job
from parallelrun.cli.job_files import JobId
from parallelrun.cli.output import say
from parallelrun.cli.server import Token, Url, connect
from parallelrun.progress.text import clean


def replay(
    job_id: JobId,
    mini_batch: Annotated[int, typer.Argument(metavar="MINI_BATCH", min=0, help="Its number.", show_default=False)],
    *,
    code: Annotated[Path, typer.Option(metavar="DIR", help="The folder with the entry script.")] = Path(),
    output: Annotated[
        str, typer.Option(metavar="DIR", help="Folder for rows and logs.", show_default="./replay-ID-MINI_BATCH")
    ] = "",
    url: Url = "",
    token: Token = "",
) -> None:
    """Run one mini-batch of a job again on this machine. It is run by the code that is in DIR now, once; the job itself
    stays as it is. The files must have the same paths here."""
    import yaml

    from parallelrun.embedded.local_run import RunOptions, run_here
    from parallelrun.job_file.reading import read_spec
    from parallelrun.job_file.replay import replay_of
    from parallelrun.progress.display import display_on

    with connect(url, token) as client:
        document = client.jobs.document(job_id)
        inputs = client.jobs.inputs_of(job_id, mini_batch)
    for name in document.left_out:
        say(f"note: {name} of the job are secret, and not set here: export them if the script needs them")
    with tempfile.TemporaryDirectory(prefix="parallelrun-replay-") as folder:
        content = replay_of(yaml.safe_load(document.text), inputs, Path(folder), code.resolve())
        end = run_here(
            read_spec({**content, "name": f"replay of {mini_batch}"}),
            RunOptions(folder=output or f"replay-{job_id}-{mini_batch}", processes=1, overwrite=True),
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
