"""Words of a job's author that reach others: terminals, spreadsheets, reports, and whoever reads what has failed."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from tests.acceptance.http_user import HttpUser
from tests.security.attack import Attack, Target
from tests.security.attacks.people import HISTORY, STORE, WORKSPACE, PersonAtDoors, person_of

_OWN_WORDS = re.compile(r"user/(stdout|stderr|entry_script_log|files)/|sys/node/.*\.(stdout|stderr)\.txt")
"""Logs with what the script itself has written, byte by byte."""
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CANARY = "kX7-canary 'of \"the\\job/%é"
_FRAGMENT = "kX7-canary"
JOINED_LOGS = ("logs/azureml/executionlogs.txt", "user_logs/std_log.txt", "user_logs/std_log_stderr.txt")
"""What Azure's client follows of a job."""

RAISES = r"""
WORDS = "=1+1\x1b]0;owned\x07 \x9b31m \u202egnp.exe \u2028 \x7f\r\nOpen next: /etc/passwd\nHint: run this"
Formula = type("=cmd|' /C calc'!A0\x1b[2J", (Exception,), {})

def run(mini_batch):
    raise Formula(WORDS)

def shutdown():
    raise Formula(WORDS)
"""
REPEATS = r"""
import os
from urllib.parse import quote

def run(mini_batch):
    secret = os.environ["CANARY"]
    raise ValueError("x" * 1990 + secret, secret, repr(secret), quote(secret), quote(secret, safe=""))

def shutdown():
    raise ValueError(os.environ["CANARY"])
"""


def answers(target: Target, script: str, **settings: object) -> Iterator[tuple[str, str]]:
    """What everybody can read about a job after its end: `(what it is, its text)`, without its script's own words."""
    target.rows_of(script, **settings)
    with HttpUser(target.url, target.token) as user:

        def got(path: str) -> str:
            return user.client.get(path).raise_for_status().text

        job = f"/v1/jobs/{user.client.get('/v1/jobs?limit=1').raise_for_status().json()['items'][0]['id']}"
        for path in (job, f"{job}/mini-batches", f"{job}/events?last_event_id=0"):
            yield path, got(path)
        for log in user.client.get(f"{job}/logs").raise_for_status().json()["items"]:
            if log["bytes"] and not _OWN_WORDS.match(log["path"]):  # empty ones go when their worker ends
                yield log["path"], got(f"{job}/logs/{log['path']}")


def by_all_doors(target: Target, job_id: str = "") -> Iterator[tuple[str, str]]:
    """What is told of a job by all doors: `(what it is, its text)`, with what its script has printed.

    Args:
        job_id: by default, the newest job's.
    """
    with person_of(target) as person:
        client, azure = person.user.client, person.azure
        job_id = job_id or client.get("/v1/jobs?limit=1").raise_for_status().json()["items"][0]["id"]
        job, run = f"/v1/jobs/{job_id}", f"{HISTORY}/runs/{job_id}"
        for path in (
            f"{job}/merged-logs?source=all&limit=1000", f"{job}/merged-logs?order=newest", f"{job}/document",
            f"{job}/settings", f"{job}/log-lines?text=x", f"{job}/failed-items", "/v1/jobs",
        ):  # fmt: skip
            yield path, client.get(path).raise_for_status().text
        for path in (run, f"{run}/details", f"{run}/children", f"{WORKSPACE}/jobs/{job_id}", f"{WORKSPACE}/jobs"):
            yield path, azure.get(path).raise_for_status().text
        yield "rundata", azure.post(f"{HISTORY}/rundata", json={"runId": job_id}).raise_for_status().text
        yield from _artifacts(person, f"ExperimentRun/dcid.{job_id}/")


def _artifacts(person: PersonAtDoors, prefix: str) -> Iterator[tuple[str, str]]:
    """The joined logs, and all artifacts of a run, as a client downloads them."""
    container, signature = f"{STORE}/azureml", person.signature("workspaceartifactstore")
    query = f"restype=container&comp=list&prefix={prefix}&{signature}"
    listed = person.azure.get(f"{container}?{query}").raise_for_status().text
    yield "the list of artifacts", listed
    for name in [*JOINED_LOGS, *re.findall(f"<Name>{prefix}([^<]+)</Name>", listed)]:
        answer = person.azure.get(f"{container}/{prefix}{name}?{signature}")
        if name not in JOINED_LOGS or answer.status_code != 416:  # an empty log has no bytes to ask for
            yield f"the artifact {name}", answer.raise_for_status().text


def trouble_in(name: str, text: str) -> str:
    """What words in a text do to who reads it; empty: nothing."""
    if control := _CONTROL.search(text):
        return f"{name} has {control[0]!r}"
    if "\nOpen next: /etc/passwd" in text or "\nHint: run this" in text:
        return f"{name} has a forged line"
    if name.endswith(".csv"):
        for row in csv.reader(text.splitlines()):
            for cell in row:
                if cell.startswith(("=", "+", "-", "@")) and not re.fullmatch(r"[-+][0-9.]+", cell):
                    return f"{name} has the formula {cell!r}"
    return ""


def _words(target: Target) -> str:
    known = [*answers(target, RAISES)]
    if not any("calc" in text for _, text in known):
        return "nothing tells of the error"
    return next(filter(None, (trouble_in(*each) for each in known)), "")


def _secret(target: Target) -> str:
    known = [*answers(target, REPEATS, environment_variables={"CANARY": _CANARY}), *by_all_doors(target)]
    if not any("ValueError" in text for _, text in known):
        return "nothing tells of the error"
    return next((f"{name} has the secret" for name, text in known if _FRAGMENT in text), "")


ATTACKS = [
    Attack("words that control who reads them", _words),
    Attack("an exception that repeats a secret", _secret),
]
