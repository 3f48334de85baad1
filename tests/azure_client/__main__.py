"""`python -m tests.azure_client --environments FOLDER RELEASE…`: scripts for Azure ML run against a cluster.

Each release of azure-ai-ml has an environment of its own, in which nothing of ours is installed. It runs the scripts as
they are, with what `parallelrun azure-env` prints in its environment, against processes; some against a cluster with a
provisioner; with `--on containers`, those of the first release against the cluster of docker-compose.yml. The documents
that Microsoft publishes, and one for each construct, are given to each release and to the command line (`corpus`), and
those with parallel steps run to their ends.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.azure_client.corpus import play, runs
from tests.azure_client.corpus.play import Compared
from tests.azure_client.corpus.runs import Ended
from tests.azure_client.servers import Server, connected, containers, embedded

FOLDER: Final = Path(__file__).parent
SCRIPTS: Final = FOLDER / "scripts"
DRIVER: Final = FOLDER / "driver.py"
TABLE: Final = FOLDER.parent.parent / "docs" / "azure-client.md"
"""The page with the table of operations, which a script compares with those of the client."""
PLACES: Final = ("processes", "provisioner", "containers", "documents")
RELEASE_S: Final = 1800.0
"""What all scripts of a release may take, on a machine that does other things."""


@dataclass(frozen=True)
class Ran:
    """How one script has ended."""

    server: str
    release: str
    script: str
    took_s: float
    error: str


def names(below: str = "") -> list[str]:
    """The scripts in a folder, in order."""
    return sorted(str(path.relative_to(SCRIPTS)) for path in (SCRIPTS / below).glob("*.py"))


def main(argv: Sequence[str] | None = None) -> int:
    """Run everything; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.azure_client")
    parser.add_argument("--environments", type=lambda text: Path(text).absolute(), required=True)
    parser.add_argument("--scripts", nargs="*", default=names())
    parser.add_argument("--provisioner", nargs="*", default=names("provisioner"), help="scripts for one with computes")
    parser.add_argument("--on", nargs="+", choices=PLACES, default=["processes", "provisioner", "documents"])
    parser.add_argument("releases", nargs="+")
    options = parser.parse_args(argv)
    releases, environments = options.releases, options.environments
    began = time.monotonic()
    home = Path(tempfile.mkdtemp(prefix="pr-azure-client-"))
    home.chmod(0o755)  # containers read inputs in it, as another user
    os.environ["XDG_STATE_HOME"] = str(home / "state")
    ran: list[Ran] = []
    if "processes" in options.on:
        ran += _play(embedded(home), releases, options.scripts, environments, home / "processes")
    if "provisioner" in options.on:
        server = embedded(home / "with-provisioner", nodes=0, has_computes=True)
        ran += _play(server, releases, options.provisioner, environments, home / "provisioner")
    if "containers" in options.on:
        ran += _play(containers(home), releases[:1], options.scripts, environments, home / "containers")
    compared: list[Compared] = []
    ended: list[Ended] = []
    if "documents" in options.on:
        compared = play.play(releases, environments, home / "documents")
        ended = runs.run(environments / f"azure-client-{releases[0]}" / "bin" / "python", home / "runs")
    return _report(ran, compared, ended, releases, took_s=time.monotonic() - began, home=home)


def _play(
    server: AbstractContextManager[Server],
    releases: Sequence[str],
    scripts: Sequence[str],
    environments: Path,
    home: Path,
) -> list[Ran]:
    home.mkdir()
    with server as there, connected(there) as environment, ThreadPoolExecutor(2) as pool:
        of_each = pool.map(lambda release: run(release, environments, scripts, home, environment), releases)
        return [each for of_release in of_each for each in of_release]


def run(release: str, environments: Path, scripts: Sequence[str], home: Path, environment: dict[str, str]) -> list[Ran]:
    """Run scripts one after the other in one process: importing the client takes longer than most of them."""
    work = home / release
    shutil.copytree(SCRIPTS, work)
    shutil.copy(TABLE, work)
    (work / "config.json").write_text(
        json.dumps({"subscription_id": "a", "resource_group": "b", "workspace_name": f"w{release.replace('.', '-')}"})
    )
    python = environments / f"azure-client-{release}" / "bin" / "python"
    log = home / f"{release}.log"
    with log.open("wb") as output:
        process = subprocess.run(
            [python, "-W", "ignore", DRIVER, home / f"{release}.json", *scripts],
            cwd=work,
            env={**environment, "VIRTUAL_ENV": "", "PYTHONPATH": ""},
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=RELEASE_S,
            check=False,
        )
    try:
        ended = json.loads((home / f"{release}.json").read_text())
    except FileNotFoundError:
        ended = []
    known = {each["script"]: Ran(home.name, release, each["script"], each["took_s"], each["error"]) for each in ended}
    lost = f"the process ended with {process.returncode}: {log.read_text(errors='replace')[-2000:]}"
    return [known.get(script, Ran(home.name, release, script, 0.0, lost)) for script in scripts]


def _report(
    ran: Sequence[Ran],
    compared: Sequence[Compared],
    ended: Sequence[Ended],
    releases: Sequence[str],
    *,
    took_s: float,
    home: Path,
) -> int:
    failed = [each for each in ran if each.error]
    wrong = [each for each in compared if each.trouble]
    for each in ran:
        state = "failed" if each.error else "passed"
        print(f"azure-ai-ml {each.release} {each.server:10} {each.script:20} {state} in {each.took_s:.1f} s")
    for each in failed:
        print(f"\n== azure-ai-ml {each.release}, {each.server}, {each.script}\n{each.error}")
    for one in wrong:
        print(f"\n== azure-ai-ml {one.release}, {one.case.name}\n{one.trouble[:2000]}")
    for document in ended:
        print(f"azure-ai-ml {releases[0]} {document.name}: {document.trouble or 'has run to its end'}")
    if failed or wrong or any(each.trouble for each in ended):
        print(f"\nthe logs are in {home}")
    else:
        shutil.rmtree(home, ignore_errors=True)
    passed = len(ran) - len(failed)
    of_documents = play.figures(compared)
    print(
        f"azure_client releases={len(releases)} scripts={len(ran)} passed={passed} {of_documents} seconds={took_s:.0f}"
    )
    return 1 if failed or wrong or any(each.trouble for each in ended) else 0


if __name__ == "__main__":
    sys.exit(main())
