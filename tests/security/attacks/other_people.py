"""What a person names of another one's, where people see only what is their own: by every field with a path, by both
doors.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.acceptance.http_user import zip_of
from tests.security.attack import Attack, Target
from tests.security.attacks.people import CANARY, HISTORY, STORE, WORKSPACE, PersonAtDoors, printed, two_people
from tests.security.target import ONE

_JOB_S: Final = 90.0
_READS_ALL: Final = """
import os
def run(mini_batch):
    texts = []
    for folder, _, names in os.walk(os.path.dirname(os.path.abspath(__file__))):
        texts += [name + ": " + open(os.path.join(folder, name), errors="replace").read() for name in names]
    for path in mini_batch:
        try:
            texts.append(path + ": " + open(path, errors="replace").read())
        except OSError as error:
            texts.append(path + ": " + str(error))
    return texts
"""
_ECHOES: Final = "def run(mini_batch):\n    return mini_batch\n"


def _traces(person: PersonAtDoors, job_id: str, other_id: str) -> str:
    """What a person finds in their own job, by all ways of looking at it, of what another job has returned."""
    job = person.user.ended(job_id, _JOB_S)
    client = person.user.client
    texts = [json.dumps(job["failure"])]
    for kind in ("outputs", "logs"):
        for file in client.get(f"/v1/jobs/{job_id}/{kind}").raise_for_status().json()["items"]:
            texts.append(client.get(f"/v1/jobs/{job_id}/{kind}/{file['path']}").text)
    for number in range(3):
        texts.append(client.get(f"/v1/jobs/{job_id}/mini-batches/0/inputs/{number}").text)
    if any(CANARY in text for text in texts):
        return "its rows were read"
    return "its files were listed" if any(f"{other_id}/outputs/parallel" in text for text in texts) else ""


@contextmanager
def _leading_to(target: Target, path: str) -> Iterator[dict[str, Any]]:
    """Ways to name what is at a path as an input, by links and tables that anybody could put where jobs may read."""
    folder = target.inputs / f"leading-{secrets.token_hex(4)}"
    for name in ("link", "links", "table", "pattern", "code", "only"):
        (folder / name).mkdir(parents=True)
    (folder / "link" / "to").symlink_to(path)
    (folder / "links" / "file").symlink_to(f"{path}/parallel_run_step.txt")
    (folder / "table" / "MLTable").write_text(f"paths:\n- folder: {path}\n")
    (folder / "pattern" / "MLTable").write_text(f"paths:\n- pattern: {path}/*.txt\n")
    (folder / "code" / "entry.py").write_text(_READS_ALL)
    for each in (folder, *folder.rglob("*")):
        if not each.is_symlink():
            each.chmod(0o755)
    there = f"{target.inputs_there}/{folder.name}"
    try:
        yield {
            "its folder": path,
            "its file": f"{path}/parallel_run_step.txt",
            "a pattern": f"{path}/*.txt",
            "a URL": f"file://{path}",
            "a link": f"{there}/link/to",
            "a folder with a link": f"{there}/link",
            "a folder with a link to a file": f"{there}/links",
            "a pattern with a link": f"{there}/l*/to/*.txt",
            "a table": {"type": "mltable", "path": f"{there}/table"},
            "a table with a pattern": {"type": "mltable", "path": f"{there}/pattern"},
            "code": f"{there}/code",
        }
    finally:
        shutil.rmtree(folder)


def _read_by_every_field(target: Target, person: PersonAtDoors, other_id: str) -> str:
    """Submit jobs that name the outputs of another one, in every field that has a path."""
    outputs = f"{target.root}/jobs/{other_id}/outputs"
    plain: dict[str, Any] = {
        "entry_script": "entry.py",
        "run_max_try": 1,
        "inputs": {"data": f"{target.inputs_there}/{ONE}"},
    }
    with _leading_to(target, outputs) as ways:
        code = ways.pop("code")
        as_inputs: dict[str, dict[str, Any]] = {
            f"{way} as an input": {"inputs": {"data": value}} for way, value in ways.items()
        }
        beside: dict[str, dict[str, Any]] = {
            "a side input": {"inputs": {**plain["inputs"], "model": {"path": outputs}}, "input_data": ["data"]},
            "an output by its name": {"inputs": {"data": f"azureml://jobs/{other_id}/outputs/score"}},
            "what to resume from": {"resume_from": other_id},
        }
        as_code: dict[str, dict[str, Any]] = {
            "code": {"code": outputs, "entry_script": "parallel_run_step.txt"},
            "code by a command": {"code": outputs, "entry_script": None, "command": "cat *.txt", "inputs": None},
            "a folder beside the code": {"code": code, "additional_includes": [outputs]},
            "a file beside the code": {"code": code, "additional_includes": [f"{outputs}/parallel_run_step.txt"]},
            "a zip beside the code": {"code": code, "additional_includes": [f"{outputs}.zip"]},
            "a folder instead of code": {"additional_includes": [outputs, f"{code}/entry.py"]},
            "a link beside the code": {"code": code, "additional_includes": [ways["a link"]]},
            "what an image is built of": {"code": code, "environment": {"build": {"path": outputs}}},
        }
        for way, settings in {**as_inputs, **beside, **as_code}.items():
            spec = {key: value for key, value in {**plain, **settings}.items() if value is not None}
            is_sent = way not in as_code
            answer = (
                person.user.post(spec, zip_of({"entry.py": _READS_ALL}))
                if is_sent else person.user.client.post("/v1/jobs", json=spec)
            )  # fmt: skip
            if answer.status_code == 202 and (traces := _traces(person, str(answer.json()["id"]), other_id)):
                return f"{way}: {traces}"
            if CANARY in answer.text:
                return f"{way}: the refusal shows its rows"
        for way, value in ways.items():
            spec = {"entry_script": "entry.py", "inputs": {"data": value}}
            answer = person.user.client.post("/v1/jobs:preview", json=spec)
            shown = answer.text.replace(str(value), "")
            if way == "a folder with a link to a file":  # a refusal says where the person's own link leads
                shown = shown.replace(f"{outputs}/parallel_run_step.txt", "")
            if CANARY in answer.text or "parallel_run_step" in shown:
                return f"a preview of {way}: {answer.text[:200]}"
    return ""


def _outputs_of_others(target: Target) -> str:
    """Read the outputs of somebody else's job, whatever leads there."""
    with two_people(target) as (victim, thief):
        return _read_by_every_field(target, thief, printed(victim, target))


def _outputs_of_the_deleted(target: Target) -> str:
    """Read the outputs of a job that one has deleted oneself, whatever leads there."""
    with two_people(target) as (person, _):
        job_id = printed(person, target)
        person.user.client.delete(f"/v1/jobs/{job_id}").raise_for_status()
        return _read_by_every_field(target, person, job_id)


def _assets_of_outputs(target: Target) -> str:
    """Make assets of somebody else's outputs, by both doors: everybody can read an asset."""
    with two_people(target) as (victim, thief):
        other_id = printed(victim, target)
        outputs, name = f"{target.root}/jobs/{other_id}/outputs", f"stolen-{secrets.token_hex(4)}"
        made = []
        for kind, document in (
            ("data", {"type": "uri_folder", "path": outputs}),
            ("model", {"type": "custom_model", "path": outputs}),
            ("code", {"path": outputs}),
            ("environment", {"build": {"path": outputs}}),
        ):
            if thief.user.client.post(f"/v1/assets/{kind}/{name}", json=document).is_success:
                made.append(f"{kind} by the API")
        for kind, properties in (
            ("data", {"dataType": "uri_folder", "dataUri": outputs}),
            ("models", {"modelType": "custom_model", "modelUri": outputs}),
            ("codes", {"codeUri": outputs}),
            ("environments", {"build": {"contextUri": outputs, "dockerfilePath": "parallel_run_step.txt"}}),
        ):
            url = f"{WORKSPACE}/{kind}/{name}/versions/1"
            if thief.azure.put(url, json={"properties": properties}).is_success:
                component = {"type": "command", "name": name, "version": "1", "command": "cat *", "environment":
                             "azureml:x", "code": f"azureml:{name}:1"}  # fmt: skip
                answer = thief.azure.put(
                    f"{WORKSPACE}/components/{name}/versions/1", json={"properties": {"componentSpec": component}}
                )
                if kind != "codes" or answer.is_success:
                    made.append(f"{kind} by the door for another client")
        read = [
            each for each in (f"{outputs}/parallel_run_step.txt", f"azureml:{name}:1")
            if thief.user.post(
                {"entry_script": "entry.py", "inputs": {"data": each}}, zip_of({"entry.py": _READS_ALL})
            ).status_code == 202
        ]  # fmt: skip
        return f"{', '.join(made)} was made of somebody else's outputs; {read} can be read" if made and read else ""


def _endpoint_of_others(target: Target) -> str:
    """Change, see and invoke somebody else's endpoint, by both doors."""
    name = f"endpoint-{secrets.token_hex(4)}"
    path, face = f"/v1/batch-endpoints/{name}", f"{WORKSPACE}/batchEndpoints/{name}"
    data = f"{target.inputs_there}/{ONE}"
    with two_people(target) as (victim, thief):
        mine = victim.user.client
        mine.put(path, json={"description": CANARY}).raise_for_status()
        deployment = {"job": {"entry_script": "entry.py", "inputs": {"data": data}}, "slots": {}}
        files: dict[str, Any] = {
            "spec": (None, json.dumps(deployment), "application/json"),
            "code": zip_of({"entry.py": _ECHOES}),
        }
        mine.put(f"{path}/deployments/blue?default=true", files=files).raise_for_status()
        before = mine.get(path).json(), mine.get(f"{path}/deployments/blue").json()
        properties = {"properties": {"description": "evil"}}
        answers = {
            "seen": thief.user.client.get(path),
            "its deployments seen": thief.user.client.get(f"{path}/deployments"),
            "defined": thief.user.client.put(path, json={"description": "evil"}),
            "deployed to": thief.user.client.put(f"{path}/deployments/red?default=true", files=files),
            "redeployed": thief.user.client.put(f"{path}/deployments/blue", files=files),
            "invoked": thief.user.client.post(f"{path}:invoke", json={"input": {"path": data}}),
            "its deployment deleted": thief.user.client.delete(f"{path}/deployments/blue"),
            "deleted": thief.user.client.delete(path),
            "seen by the other door": thief.azure.get(face),
            "its deployments seen by the other door": thief.azure.get(f"{face}/deployments"),
            "its jobs seen by the other door": thief.azure.get(f"{face}/jobs"),
            "defined by the other door": thief.azure.put(face, json=properties),
            "invoked by the other door": thief.azure.post(f"{face}/jobs", json={"properties": {}}),
            "its deployment deleted by the other door": thief.azure.delete(f"{face}/deployments/blue"),
            "deleted by the other door": thief.azure.delete(face),
        }
        for url, client in (("/v1/batch-endpoints", thief.user.client), (f"{WORKSPACE}/batchEndpoints", thief.azure)):
            if name in client.get(url).text:
                return "somebody else's endpoint is in the list"
        after = mine.get(path).json(), mine.get(f"{path}/deployments/blue").json()
        mine.delete(path)
        if done := [what for what, answer in answers.items() if answer.is_success]:
            return f"somebody else's endpoint was {', '.join(done)}"
        return "somebody else's endpoint has changed" if before != after else ""


_TRICKS: Final = (
    "../{id}/job.json", "..%2F{id}%2Fjob.json", "%2e%2e/job.json", "logs/../../job.json", "outputs/../../job.json",
    "outputs/%2e%2e/job.json", "//job.json", "./job.json", "outputs//../job.json", "user/artifacts/../../../job.json",
    "outputs/..;/job.json", "outputs%00/../job.json", "..\\job.json", "%252e%252e/job.json",
)  # fmt: skip


def _run_of_others(target: Target) -> str:
    """Ask for somebody else's run and its artifacts as MLflow and Azure's client do, change it, and leave the folder of
    the artifacts of an own run."""
    with two_people(target) as (victim, thief):
        other_id, own_id = printed(victim, target), printed(thief, target)
        run, history = f"{HISTORY}/runs/{other_id}", HISTORY.rpartition("/")[0]
        changes = {"tags": {"evil": "1"}, "displayName": "evil", "hidden": True}
        answers = {
            "run": thief.azure.get(run),
            "details": thief.azure.get(f"{run}/details"),
            "data": thief.azure.post(f"{HISTORY}/rundata", json={"runId": other_id}),
            "services": thief.azure.get(f"{run}/serviceinstances/0"),
            "change": thief.azure.patch(run, json=changes),
            "change in an experiment": thief.azure.patch(f"{HISTORY}/experiments/x/runs/{other_id}", json=changes),
            "job": thief.azure.put(f"{WORKSPACE}/jobs/{other_id}", json={"properties": changes}),
            "cancel": thief.azure.post(f"{WORKSPACE}/jobs/{other_id}/cancel"),
            "history": thief.azure.get(f"{history}/runs/{other_id}"),
        }
        if done := [what for what, answer in answers.items() if answer.is_success]:
            return f"somebody else's run was answered: {', '.join(done)}"
        shown = victim.user.client.get(f"/v1/jobs/{other_id}").json()
        if "evil" in json.dumps(shown):
            return "somebody else's run was changed"
        signature = thief.signature("workspaceartifactstore")
        for job_id in (own_id, other_id):
            for trick in (each.format(id=other_id) for each in _TRICKS):
                url = f"{STORE}/azureml/ExperimentRun/dcid.{job_id}/{trick}?{signature}"
                answer = thief.azure.get(url)
                if answer.is_success and ("submitted" in answer.text or CANARY in answer.text):
                    return f"{trick} was served"
                answer = thief.user.client.get(f"/v1/jobs/{own_id}/logs/{trick}")
                if answer.is_success and "submitted" in answer.text:
                    return f"the log {trick} was served"
    return ""


def _long_names(target: Target) -> str:
    """Submit under two names that begin alike, as a client does whose names are long."""
    beginning = f"n{secrets.token_hex(4)}" + "x" * 180
    inputs = {"data": {"jobInputType": "uri_folder", "uri": f"{target.inputs_there}/{ONE}"}}
    with two_people(target) as (person, _):
        ids = []
        for name in (f"{beginning}-a", f"{beginning}-b"):
            properties = {
                "jobType": "Command", "command": "echo ${{inputs.data}}", "inputs": inputs,
                "environmentId": "azureml:none", "computeId": "local",
            }  # fmt: skip
            answer = person.azure.put(f"{WORKSPACE}/jobs/{name}", json={"properties": properties})
            assert answer.is_success, answer.text
            ids.append(answer.json()["properties"]["properties"]["parallelrun.job_id"])
        for job_id in ids:
            person.user.client.post(f"/v1/jobs/{job_id}:cancel")
    return "two names are one job" if len({*ids}) < len(ids) else ""


ATTACKS: list[Attack] = [
    Attack("somebody else's outputs, by every field with a path", _outputs_of_others, own_only=True),
    Attack("the outputs of a deleted job, by every field with a path", _outputs_of_the_deleted),
    Attack("assets of somebody else's outputs", _assets_of_outputs, own_only=True),
    Attack("somebody else's endpoint, by both doors", _endpoint_of_others, own_only=True),
    Attack("somebody else's run and its artifacts", _run_of_others, own_only=True),
    Attack("long names of jobs that begin alike", _long_names),
]
