"""What somebody who may submit jobs can do to others who may, where each person has a token of their own."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import httpx

from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, NotPlayable, Target
from tests.security.target import ONE

CANARY: Final = "canary-of-the-victim"
_ML: Final = "https://ml.azure.com"
WORKSPACE: Final = "/azure/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"
HISTORY: Final = WORKSPACE.replace("/azure", "/azure/history/v1.0", 1)
STORE: Final = "/azure/blob/store"
_UPLOADS: Final = f"{STORE}/azureml-blobstore"
_PRINTING: Final = f"def run(mini_batch):\n    print('{CANARY}')\n    return ['{CANARY}']\n"
_AT_ONCE: Final = 8


@dataclass(frozen=True)
class PersonAtDoors:
    """Somebody with a token of this server, who asks by its API, and as Azure's client does."""

    name: str
    user: HttpUser
    azure: httpx.Client

    def signature(self, datastore: str = "workspaceblobstore") -> str:
        """The query with which the container of a datastore is used."""
        answer = self.azure.post(f"{WORKSPACE}/datastores/{datastore}/listSecrets", json={})
        return str(answer.raise_for_status().json()["sasToken"])

    def put(self, blob: str, content: bytes, query: str = "", **headers: str) -> int:
        """Upload a blob, or a part of one; returns the status of the answer."""
        url = f"{_UPLOADS}/{blob}?{self.signature()}{query}"
        return self.azure.put(url, content=content, headers={"x-ms-blob-type": "BlockBlob", **headers}).status_code

    def blob(self, blob: str, container: str = _UPLOADS, datastore: str = "workspaceblobstore") -> httpx.Response:
        """Ask for a blob."""
        return self.azure.get(f"{container}/{blob}?{self.signature(datastore)}")


@contextmanager
def two_people(target: Target) -> Iterator[tuple[PersonAtDoors, PersonAtDoors]]:
    """A victim and a thief, both of whom may submit jobs.

    Raises:
        NotPlayable: this server makes no tokens.
    """
    names = [f"{role}-{secrets.token_hex(3)}" for role in ("victim", "thief")]
    with HttpUser(target.url, target.token) as admin:
        made = [admin.client.put(f"/v1/tokens/{name}", json={"scopes": ["submit"]}) for name in names]
        if made[0].status_code == 409:
            raise NotPlayable("this server makes no tokens")
        try:
            tokens = [str(answer.raise_for_status().json()["token"]) for answer in made]
            with _person(target, names[0], tokens[0]) as victim, _person(target, names[1], tokens[1]) as thief:
                yield victim, thief
        finally:
            for name in names:
                admin.client.delete(f"/v1/tokens/{name}")


@contextmanager
def person_of(target: Target) -> Iterator[PersonAtDoors]:
    """Whoever has the token of a target, at both doors."""
    with _person(target, "", target.token) as person:
        yield person


@contextmanager
def _person(target: Target, name: str, token: str) -> Iterator[PersonAtDoors]:
    with (
        HttpUser(target.url, token) as user,
        httpx.Client(base_url=target.url, timeout=30, trust_env=False) as azure,
    ):
        identity = azure.get(f"/azure/identity?resource={_ML}", headers={"X-IDENTITY-HEADER": token})
        azure.headers["Authorization"] = f"Bearer {identity.raise_for_status().json()['access_token']}"
        yield PersonAtDoors(name, user, azure)


def _submitted(person: PersonAtDoors, target: Target, script: str, **settings: Any) -> httpx.Response:
    inputs = {"inputs": {"data": f"{target.inputs_there}/{ONE}"}, "run_max_try": 1}
    return person.user.post({"entry_script": "entry.py", **inputs, **settings}, zip_of({"entry.py": script}))


def printed(person: PersonAtDoors, target: Target) -> str:
    """Let somebody's job print and return what nobody else is to see; returns its id."""
    job_id = str(_submitted(person, target, _PRINTING).raise_for_status().json()["id"])
    person.user.completed(job_id)
    return job_id


def _uploads_of_others(target: Target) -> str:
    """Write into the folder in which a client has put somebody's code, and into one that it will look for."""
    folder, foretold = (f"LocalUpload/{secrets.token_hex(16)}" for _ in range(2))
    blocks = b"<BlockList><Latest>YQ==</Latest></BlockList>"
    with two_people(target) as (victim, thief):
        assert victim.put(f"{folder}/entry.py", b"good") == 201
        thief.put(f"{folder}/entry.py", b"evil")
        thief.put(f"{folder}/sitecustomize.py", b"evil")
        thief.put(f"{folder}/entry.py", b"evil", "&comp=block&blockid=YQ%3D%3D")
        thief.put(f"{folder}/entry.py", blocks, "&comp=blocklist")
        if (content := victim.blob(f"{folder}/entry.py").content) != b"good":
            return f"somebody's code was replaced with {content!r}"
        if victim.blob(f"{folder}/sitecustomize.py").status_code == 200:
            return "a file was added to somebody's code"
        completed = {"x-ms-meta-name": "code", "x-ms-meta-upload_status": "completed"}
        assert thief.put(f"{foretold}/entry.py", b"evil", **completed) == 201
        answer = victim.blob(f"{foretold}/entry.py")
        if "x-ms-meta-upload_status" in answer.headers or victim.put(f"{foretold}/entry.py", b"good") == 201:
            return "a client takes what somebody else has put there for its own upload"
    return ""


def _job_of_others(target: Target) -> str:
    """Ask by both doors for what somebody's job has printed and returned, where people see only their own."""
    with two_people(target) as (victim, thief):
        job_id = printed(victim, target)
        job, run = f"/v1/jobs/{job_id}", f"{HISTORY}/runs/{job_id}"
        files = [
            f"{job}/{kind}/{file['path']}"
            for kind in ("logs", "outputs")
            for file in victim.user.client.get(f"{job}/{kind}").raise_for_status().json()["items"]
        ]
        own_id = str(_submitted(thief, target, _PRINTING).raise_for_status().json()["id"])
        paths = [
            job, f"{job}/logs", f"{job}/outputs", f"{job}/merged-logs", f"{job}/log-lines?text=a", f"{job}/document",
            f"{job}/mini-batches", f"{job}/settings", f"/v1/jobs/{own_id}/comparison?other={job_id}", *files,
        ]  # fmt: skip
        seen = [path for path in paths if thief.user.client.get(path).status_code != 404]
        seen += [path for path in (run, f"{run}/details", f"{run}/children") if thief.azure.get(path).is_success]
        logs = f"ExperimentRun/dcid.{job_id}"
        for blob in (f"{logs}/user_logs/std_log.txt", f"{logs}/logs/azureml/executionlogs.txt"):
            answer = thief.blob(blob, f"{STORE}/azureml", "workspaceartifactstore")
            seen += [blob] if answer.is_success else []
        blob = f"azureml-outputs/{job_id}/score/parallel_run_step.txt"
        assert CANARY in victim.blob(blob).text
        seen += [blob] if thief.blob(blob).is_success else []
        for container, prefix, datastore in (
            ("azureml", logs, "workspaceartifactstore"),
            ("azureml-blobstore", f"azureml-outputs/{job_id}/score/", "workspaceblobstore"),
        ):
            query = f"restype=container&comp=list&prefix={prefix}"
            listed = thief.azure.get(f"{STORE}/{container}?{query}&{thief.signature(datastore)}")
            seen += [f"the list of {prefix}"] if "<Blob>" in listed.text else []
        read = _submitted(thief, target, _PRINTING, inputs={"data": f"{target.root}/jobs/{job_id}/outputs"})
        seen += ["a job that reads its outputs"] if read.status_code == 202 else []
        return f"somebody else sees {', '.join(seen)}" if seen else ""


def _more_than_a_quota(target: Target) -> str:
    """Submit jobs at the same moment, of which a quota allows one."""
    with two_people(target) as (_, thief), HttpUser(target.url, target.token) as admin:
        admin.client.put(f"/v1/quotas/{thief.name}", json={"jobs": 1}).raise_for_status()
        sleeping = "import time\ndef run(mini_batch):\n    time.sleep(60)\n"
        try:
            with ThreadPoolExecutor(_AT_ONCE) as threads:
                submit = partial(_submitted, thief, target, sleeping)
                answers = [each.result() for each in [threads.submit(submit) for _ in range(_AT_ONCE)]]
            jobs = [str(answer.json()["id"]) for answer in answers if answer.status_code == 202]
            for job_id in jobs:
                admin.client.post(f"/v1/jobs/{job_id}:cancel")
        finally:
            admin.client.delete(f"/v1/quotas/{thief.name}")
        assert jobs, [answer.text for answer in answers]
        return f"{len(jobs)} jobs were accepted" if len(jobs) > 1 else ""


_FORGING: Final = """
import glob, hashlib, json, os
def run(mini_batch):
    for path in glob.glob(os.path.join({root!r}, "tokens", "*.json")):
        try:
            with open(path) as file:
                stored = json.load(file)
        except OSError:
            continue
        digest = hashlib.sha256({text!r}.encode()).hexdigest()
        forged = {{**stored, "name": "mallory", "sha256": digest, "scopes": ["read", "submit", "admin"]}}
        with open(os.path.join({root!r}, "tokens", "mallory.json"), "w") as file:
            json.dump(forged, file)
        return ["forged"]
    return ["out of reach"]
"""


def _forged_token(target: Target) -> str:
    """Let code of a job put a token into the folder that all share, where the server keeps its own."""
    text = f"prt_{secrets.token_urlsafe(16)}"
    with two_people(target), HttpUser(target.url, target.token) as admin:
        target.rows_of(_FORGING.format(root=target.root, text=text))
        admin.client.get("/v1/tokens").raise_for_status()  # all are read anew
        with HttpUser(target.url, text) as mallory:
            status = mallory.client.get("/v1/jobs").status_code
        with suppress(httpx.HTTPError):
            admin.client.delete("/v1/tokens/mallory")
    return f"a token that a job has written is answered with {status}" if status != 401 else ""


LEADING: Final = """
import json, os
def run(mini_batch):
    logs = os.path.join({root!r}, "jobs", os.environ["AZUREML_RUN_ID"], "logs", "user", "stdout")
    os.makedirs(os.path.join(logs, "zz"), exist_ok=True)
    done = []
    for name, make in (("1", os.symlink), ("2", os.link)):
        try:
            make({victim!r}, os.path.join(logs, "zz", name))
            done.append(name)
        except OSError:
            pass
    os.mkfifo(os.path.join(logs, "zz", "3"))
    with open(os.path.join(logs, "zz", "4"), "w") as file:
        file.truncate(1 << 40)
    return [json.dumps(done)]
"""


def _joined_logs_that_lead_elsewhere(target: Target) -> str:
    """Let a job have links, a pipe and a file without an end among what it has printed, which is joined when somebody
    asks for it by the door for another client."""
    with HttpUser(target.url, target.token) as user:
        job = user.submit({"entry_script": "entry.py", "inputs": {"data": f"{target.inputs_there}/{ONE}"}},
                          zip_of({"entry.py": _PRINTING}))  # fmt: skip
        path = f"{target.root}/jobs/{job}/outputs/parallel_run_step.txt"
        user.completed(job)
    target.rows_of(LEADING.format(root=target.root, victim=path))
    with HttpUser(target.url, target.token) as user, _person(target, "", target.token) as person:
        newest = user.client.get("/v1/jobs?limit=1").raise_for_status().json()["items"][0]["id"]
        url = f"{STORE}/azureml/ExperimentRun/dcid.{newest}/user_logs/std_log.txt"
        url += f"?{person.signature('workspaceartifactstore')}"
        with person.azure.stream("GET", url, headers={"x-ms-range": "bytes=0-1048575"}) as answer:
            text = answer.read() if answer.status_code in (200, 206) else b""
        size = int(answer.headers.get("Content-Range", "/0").rpartition("/")[2])
    if CANARY.encode() in text:
        return "the joined logs have rows of another job"
    return f"joined logs of {size:,} bytes are offered" if size > 1 << 30 else ""


ATTACKS: list[Attack] = [
    Attack("an upload of somebody else, by the door for another client", _uploads_of_others),
    Attack("somebody else's job, by both doors", _job_of_others, own_only=True),
    Attack("jobs at the same moment, more than a quota has", _more_than_a_quota),
    Attack("a token that a job puts into the folder that all share", _forged_token),
    Attack("joined logs with links to what is another job's", _joined_logs_that_lead_elsewhere),
]
