"""Submits each document twice, with the client and with the command line, and compares the jobs that they become."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from parallelrun.client import Client
from parallelrun.errors import ParallelRunError
from parallelrun_core.assets.site import VARIABLE
from parallelrun_core.errors import InvalidInput
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.layout import blobstore_of, code_store
from tests.azure_client.corpus.cases import (
    CONFIG,
    Case,
    constructs,
    datastore_files,
    differing,
    published,
    refused,
    site_of,
)
from tests.azure_client.corpus.compare import differences, meaning
from tests.azure_client.servers import connected, embedded

SUBMIT: Final = Path(__file__).parent / "submit.py"
RELEASE_S: Final = 3600.0


@dataclass
class Answer:
    """How one door has answered a document."""

    job: str = ""
    """The id of the job; empty: it has become none."""
    refusals: list[tuple[str, str]] = field(default_factory=list)
    """The problems of the document: where, and what."""
    kept_back: str = ""
    """Why the client itself has sent nothing."""
    name: str = ""
    """What the client calls the job, if it has another name there."""


@dataclass(frozen=True)
class Compared:
    """A document that a release of the client was given, and what is wrong with what has become of it."""

    release: str
    case: Case
    is_sent: bool
    is_taken: bool
    trouble: str


def play(releases: Sequence[str], environments: Path, home: Path) -> list[Compared]:
    """Give every document to every release of the client, and to the command line.

    Args:
        environments: the folder with the environment `azure-client-<release>` for each release.
        home: an empty folder for the documents, and for a cluster without nodes.
    """
    home.mkdir()
    cases = published(home / "published") + constructs(home / "constructs")
    registered, jobs = [each for each in cases if each.register], [each for each in cases if not each.register]
    site = home / "site.yml"
    site.write_text(yaml.safe_dump(site_of(home / "published")))
    os.environ[VARIABLE] = str(site)
    try:
        with (
            embedded(home, nodes=0) as server,
            connected(server) as environment,
            Client(server.url, server.token) as client,
        ):
            _fill(blobstore_of(server.root))
            first, *_ = releases
            _register(
                environments / f"azure-client-{first}" / "bin" / "python", registered, home / "registered", environment
            )
            with ThreadPoolExecutor(2) as pool:
                answers = pool.map(
                    lambda release: by_client(
                        environments / f"azure-client-{release}" / "bin" / "python", jobs, home / release, environment
                    ),
                    releases,
                )
                lines = {case.name: by_command_line(client, case) for case in jobs}
                return [
                    _compared(release, case, of_release[case.name], lines[case.name], server.root)
                    for release, of_release in zip(releases, answers, strict=True)
                    for case in jobs
                ]
    finally:
        del os.environ[VARIABLE]


def figures(compared: Sequence[Compared]) -> str:
    """The figures of all documents in one line."""
    documents = {each.case.name for each in compared if each.case.is_published}
    wrong = {each.case.name for each in compared if each.trouble}
    taken = {each.case.name for each in compared if each.is_taken} & documents
    bodies = sum(each.is_sent for each in compared)
    return f"bodies={bodies} documents={len(documents)} taken={len(taken)} same_as_cli={len(taken - wrong)}"


def _compared(release: str, case: Case, client: Answer, line: Answer, root: Path) -> Compared:
    client.name, client.job = client.job, job_id_of(root, client.job)
    wrong = "" if client.kept_back else trouble(client, line, root)
    if case.name in differing():
        wrong = "" if wrong else f"differs no longer: {differing()[case.name]}"
    if case.is_published and not client.job and case.name not in refused():
        wrong = wrong or f"not taken: {client.refusals or client.kept_back}"
    return Compared(release, case, not client.kept_back, bool(client.job), wrong)


def job_id_of(root: Path, name: str) -> str:
    """The id of the job that a client calls by a name."""
    if not name:
        return ""
    return str(json.loads((root / "azure" / "jobs" / "names" / f"{name}.json").read_text())["job_id"])


def _fill(datastore: Path) -> None:
    for name, text in datastore_files().items():
        file = datastore / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _register(python: Path, cases: Sequence[Case], folder: Path, environment: Mapping[str, str]) -> None:
    for name, answer in by_client(python, cases, folder, environment).items():
        if not answer.job:
            raise RuntimeError(f"{name} can't be registered: {answer.refusals or answer.kept_back}")


def by_client(python: Path, cases: Sequence[Case], folder: Path, environment: Mapping[str, str]) -> dict[str, Answer]:
    """Submit documents with a release of the client; what it says of each, by name.

    Args:
        python: of the release's environment.
        folder: where the answers are written.
    """
    folder.mkdir()
    (folder / "config.json").write_text(CONFIG)
    asked, told = folder / "cases.json", folder / "answers.json"
    documents = [{"case": case.name, "file": str(case.for_client), "register": case.register} for case in cases]
    asked.write_text(json.dumps(documents))
    with (folder / "client.log").open("wb") as log:
        done = subprocess.run(
            [python, "-W", "ignore", SUBMIT, asked, told],
            cwd=folder,
            env={**environment, "VIRTUAL_ENV": "", "PYTHONPATH": ""},
            stdout=log,
            stderr=subprocess.STDOUT,
            timeout=RELEASE_S,
            check=False,
        )
    answers = json.loads(told.read_text()) if told.exists() else []
    if done.returncode or len(answers) < len(cases):
        raise RuntimeError(f"the client ended with {done.returncode}: {(folder / 'client.log').read_text()[-3000:]}")
    return {
        each["case"]: Answer(
            each.get("job", ""), [tuple(problem) for problem in each.get("refused", [])], each.get("kept_back", "")
        )
        for each in answers
    }


def by_command_line(client: Client, case: Case) -> Answer:
    """Submit a document as `parallelrun job create -f` does."""
    here = Path.cwd()
    os.chdir(case.file.parent)
    try:
        return Answer(client.jobs.create(case.file, upload_code=False).id)
    except (InvalidInput, ParallelRunError) as error:
        problems = getattr(error, "problems", None) or ()
        return Answer(refusals=[(each.pointer, each.message) for each in problems] or [("", str(error))])
    finally:
        os.chdir(here)


def trouble(client: Answer, line: Answer, root: Path) -> str:
    """What is wrong with a pair of answers; empty if they are the same."""
    if client.job and line.job:
        one, other = (_meaning(root, each) for each in (client, line))
        return "; ".join(differences(one, other))
    if client.job or line.job:
        taken, refused = ("client", line) if client.job else ("command line", client)
        return f"taken by the {taken} only: {refused.refusals or refused.kept_back}"
    one, other = (sorted(_words(text) for _, text in each.refusals) for each in (client, line))
    return "" if one == other else f"refused in other words: {one} by the client, {other} by the command line"


def _words(text: str) -> str:
    """A refusal without its place, which is another one in what the client sends, and without its hint."""
    return text.partition(": ")[2].partition(" (")[0] if text.startswith("/") else text.partition(" (")[0]


def _meaning(root: Path, answer: Answer) -> Any:
    """The meaning of a job, with its id in the place of the name that a client has given to it."""
    record = JobFolder(root, answer.job).record()
    text = json.dumps(record.spec)
    spec = json.loads(text.replace(answer.name, answer.job) if answer.name else text)
    return meaning(spec, root, code_store(root) / record.code if record.code else None)
