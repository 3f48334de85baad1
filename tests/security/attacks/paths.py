"""What a submitter can name, or have his code put in the way, to reach files that are not the job's."""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, Target
from tests.security.local_store import ALLOWED, CANARY, PRIVATE, reached_store, store_of

_ROWS = "def run(mini_batch):\n    return mini_batch\n"
_PLANTING = """
import argparse, glob, os
parser = argparse.ArgumentParser()
parser.add_argument("--made")
made = parser.parse_known_args()[0].made
def run(mini_batch):
    os.makedirs(made, exist_ok=True)
    HOW
    return ["planted"]
"""
_MADE = {"outputs": {"made": {"type": "uri_folder"}}, "program_arguments": "--made ${{outputs.made}}"}
_JOB_S = 240.0


def submit(user: HttpUser, target: Target, script: str = _ROWS, **settings: Any) -> tuple[int, dict[str, Any]]:
    """Submit a job; returns the status of the answer, and the job once it has ended, or the problem."""
    spec = {"entry_script": "entry.py", "inputs": {"data": f"{target.inputs_there}/one"}, "run_max_try": 1, **settings}
    answer = user.post(spec, zip_of({"entry.py": script}))
    if answer.status_code != 202:
        return answer.status_code, answer.json()
    return 202, user.ended(str(answer.json()["id"]), _JOB_S)


def _planted(user: HttpUser, target: Target, how: str, **settings: Any) -> dict[str, Any]:
    """A job whose code has put something among its outputs, unless it was held back from doing so."""
    status, job = submit(user, target, _PLANTING.replace("HOW", how), **{**_MADE, **settings})
    assert status == 202, job
    assert job["progress"]["done"] or target.is_apart, f"nothing was planted: {job['failure']}"
    return job


def _victim(user: HttpUser, target: Target) -> str:
    """A job of somebody else."""
    status, job = submit(user, target)
    assert status == 202, job
    return str(job["id"])


def _own_files(target: Target, victim: str) -> list[str]:
    """Files and folders of the cluster that are none of a job's business."""
    job = f"{target.root}/jobs/{victim}"
    return [
        target.root, f"{target.root}/token", f"{target.root}/jobs", f"{target.root}/code", job, f"{job}/job.json",
        f"{job}/parts", f"{job}/outputs/../job.json", f"{target.root}/any-other/name",
        f"{target.inputs_there}/{'../' * 30}{target.root}/jobs",
    ]  # fmt: skip


def _as_output(kind: str, target: Target) -> str:
    """Name the cluster's own files as outputs, which could then be written to and downloaded."""
    with HttpUser(target.url, target.token) as user:
        victim = _victim(user, target)
        for path in [*_own_files(target, victim), f"{target.root}/jobs/{victim}/outputs"]:
            settings: dict[str, Any] = (
                {"output": path} if not kind else {"outputs": {"x": {"type": kind, "path": path}}}
            )
            status, answer = submit(user, target, **settings)
            if status == 202:
                return f"{path} was accepted as an output: {answer['state']}"
    return ""


def _as_input(target: Target) -> str:
    """Name them as inputs."""
    with HttpUser(target.url, target.token) as user:
        victim = _victim(user, target)
        paths = [f"{target.root}/*", f"{target.root}/jobs/*/job.json", f"{target.root}/**/job.json"]
        for path in [*_own_files(target, victim), *paths]:
            beside = {"data": f"{target.inputs_there}/one", "model": {"path": path}}
            for settings in ({"inputs": {"data": path}}, {"inputs": beside, "input_data": ["data"]}):
                status, answer = submit(user, target, **settings)
                if status == 202:
                    return f"{path} was accepted as an input: {answer['state']}"
    return ""


@contextmanager
def placed(target: Target) -> Iterator[Path]:
    """A folder for links among the inputs, which anybody may read."""
    folder = target.inputs / f"links-{secrets.token_hex(4)}"
    folder.mkdir()
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _by_link(target: Target) -> str:
    """Let links among the inputs lead to them: below a folder, through a pattern, and from an MLTable."""
    with HttpUser(target.url, target.token) as user, placed(target) as folder:
        victim = _victim(user, target)
        (folder / "link1").symlink_to(f"{target.root}/jobs/{victim}")
        (folder / "file").symlink_to(f"{target.root}/jobs/{victim}/job.json")
        table = folder / "table"
        table.mkdir()
        (table / "MLTable").write_text(f"paths:\n- file: {target.root}/jobs/{victim}/job.json\n")
        linked = folder / "linked"
        linked.mkdir()
        (linked / "MLTable").symlink_to(f"{target.root}/jobs/{victim}/job.json")
        there = f"{target.inputs_there}/{folder.name}"
        for given in (
            there, f"{there}/link1", f"{there}/link1/job.json", f"{there}/link*/job.json", f"{there}/**/job.json",
            f"{there}/fi*", *({"type": "mltable", "path": f"{there}/{name}"} for name in ("table", "linked")),
        ):  # fmt: skip
            status, answer = submit(user, target, inputs={"data": given})
            if status == 202 and answer["progress"]["done"]:
                return f"{given} was read"
            if victim in json.dumps(answer.get("errors", "")) and "submitted" in json.dumps(answer.get("errors", "")):
                return f"{given}: the error shows what is there: {answer}"
    return ""


def _by_link_of_a_job(target: Target) -> str:
    """Have a job leave a link among its outputs, which are the input of the next job."""
    plant = f"os.symlink({target.root!r} + '/jobs', made + '/link'); open(made + '/x', 'w').close()"
    with HttpUser(target.url, target.token) as user:
        first = _planted(user, target, plant)
        path = f"{target.root}/jobs/{first['id']}/outputs/made"
        for given in (path, f"{path}/l*/*/job.json"):
            status, answer = submit(user, target, inputs={"data": given})
            if status == 202 and answer["state"] == "completed":
                return f"{given} was read through a link"
    return ""


def _download(how: str, target: Target) -> str:
    """Have a job put another name of a file of the cluster into its outputs, and download it."""
    with HttpUser(target.url, target.token) as user:
        victim = _victim(user, target)
        wanted = f"{target.root}/jobs/{victim}/job.json"
        plant = f"os.{how}({wanted!r}, made + '/stolen')"
        job = _planted(user, target, plant)
        answer = user.client.get(f"/v1/jobs/{job['id']}/outputs/made/stolen")
        if answer.status_code == 200:
            return f"{wanted} was served: {answer.text[:100]}"
    return ""


def _publish_elsewhere(target: Target) -> str:
    """Replace the folder of the rows by a link, so that they are published among the cluster's own files."""
    name = f"planted-{secrets.token_hex(4)}.txt"
    plant = f"os.rmdir(made); os.symlink({target.root!r}, made)"
    with HttpUser(target.url, target.token) as user:
        job = _planted(user, target, plant, append_row_to="made", append_row_file_name=name)
        if job["state"] == "completed" and job["output"]:
            listed = submit(user, target, "import os\ndef run(mini_batch):\n    return os.listdir(ROOT)\n".replace(
                "ROOT", repr(target.root)))[1]  # fmt: skip
            rows = user.client.get(f"/v1/jobs/{listed['id']}/outputs/parallel_run_step.txt").text
            return f"{name} was published in {target.root}" if name in rows else ""
    return ""


READING = "def run(mini_batch):\n    return [open(path).read() for path in mini_batch]\n"
_ESCAPES = ("..", "%2e%2e", "%252e%252e", ".%2e", "..;a=b")
_RARE_ESCAPES = ("%c0%ae%c0%ae", "%u002e%u002E", ".%25c0%25ae", "..%00", ".%09.", "..%2500a")
"""Dots for servers that read more than UTF-8, or leave out what can't be seen."""


def _web_of(target: Target) -> str:
    store = store_of(target)
    return store.url if store is not None else "https://127.0.0.1"


def _by_spelling(escapes: tuple[str, ...], target: Target) -> str:
    """Name a place as a server would read it, and not as it is compared with what is allowed."""
    web = _web_of(target)
    urls = [f"{web}/{ALLOWED}/{escape}/{PRIVATE}/x" for escape in escapes]
    odd = (f"{web}/{ALLOWED}/..%5c{PRIVATE}/x", f"{web}/{ALLOWED}//x", f"s3://{ALLOWED}/a/../../{PRIVATE}/x")
    in_datastores = [f"azureml://datastores/PLACE/paths/a/{escape}/{escape}/x" for escape in escapes]
    with HttpUser(target.url, target.token) as user:
        for url in (*urls, *odd, *in_datastores):
            status, answer = submit(user, target, READING, inputs={"data": url})
            if status == 202:
                return f"{url} was accepted, and {_what_was_read(user, answer)}"
    return ""


def _by_documents(target: Target) -> str:
    """Have an MLTable, a data asset, an input beside the data, or a pattern name a place in such a spelling."""
    web, name = _web_of(target), f"odd-{secrets.token_hex(4)}"
    urls = [f"{web}/{ALLOWED}/{escape}/{PRIVATE}/x" for escape in (*_ESCAPES, *_RARE_ESCAPES)]
    with HttpUser(target.url, target.token) as user, placed(target) as folder:
        one = {"data": f"{target.inputs_there}/one"}
        for number, url in enumerate(urls):
            table, version = folder / str(number), str(number + 1)
            table.mkdir()
            (table / "MLTable").write_text(f"paths:\n- file: {json.dumps(url)}\n")
            document = {"type": "uri_file", "path": url}
            defined = user.client.put(f"/v1/assets/data/{name}/versions/{version}", json=document).is_success
            ways: list[dict[str, Any]] = [
                {"data": {"type": "mltable", "path": f"{target.inputs_there}/{folder.name}/{number}"}},
                {**one, "model": {"path": url}},
                *([{"data": f"azureml:{name}:{version}"}] if defined else []),
            ]
            for inputs in ways:
                status, answer = submit(user, target, READING, inputs=inputs, input_data=["data"])
                if status == 202:
                    return f"{inputs} was accepted, and {_what_was_read(user, answer)}"
    return ""


def _by_pattern(target: Target) -> str:
    """Let a pattern in a datastore match what leads up, and let a store name objects that do."""
    store = reached_store(target)
    drop = f"escaped-{secrets.token_hex(4)}"
    up = f"{'../' * 30}tmp/{drop}"
    store.objects |= {f"{ALLOWED}/tree/x": b"a row\n", f"{ALLOWED}/tree/{up}": b"escaped\n"}
    fields = {"type": "s3", "region": "us-east-1", "anonymous": True, "endpoint": store.url, "bucket": ALLOWED}
    try:
        with HttpUser(target.url, target.token) as user:
            user.client.put("/v1/datastores/patterns", json=fields).raise_for_status()
            for pattern in (
                f"[.][.]/{PRIVATE}/x", f".?/{PRIVATE}/x", f"folder/*/../../{PRIVATE}/x", f"[.].{PRIVATE}/x", "tree/",
                "tree/**",
            ):  # fmt: skip
                place = f"azureml://datastores/patterns/paths/{pattern}"
                status, answer = submit(user, target, READING, inputs={"data": place})
                if status == 202 and CANARY in (read := _what_was_read(user, answer)):
                    return f"{pattern} was accepted, and {read}"
                if Path("/tmp", drop).exists():
                    return f"{pattern}: a node has written the object {up} to where its name leads"
            user.client.delete("/v1/datastores/patterns")
    finally:
        for key in ("x", up):
            del store.objects[f"{ALLOWED}/tree/{key}"]
        Path("/tmp", drop).unlink(missing_ok=True)
    return ""


def _by_endpoint(target: Target) -> str:
    """Define a datastore whose server has a path, or whose folder leads out of its bucket."""
    store = store_of(target)
    server = store.url if store is not None else "https://127.0.0.1"
    odd = (
        {"endpoint": f"{server}/{ALLOWED}/%2e%2e", "bucket": PRIVATE},
        {"endpoint": f"{server}/{ALLOWED}/..", "bucket": PRIVATE},
        {"endpoint": f"{server}/{ALLOWED}", "bucket": PRIVATE},
        {"endpoint": server, "bucket": ALLOWED, "prefix": f"a/%2e%2e/%2e%2e/{PRIVATE}"},
        {"endpoint": server, "bucket": ALLOWED, "prefix": f"a/../../{PRIVATE}"},
    )
    public = {"type": "s3", "region": "us-east-1", "anonymous": True}
    with HttpUser(target.url, target.token) as user:
        for fields in odd:
            if user.client.put("/v1/datastores/attacker", json={**public, **fields}).is_success:
                _, answer = submit(user, target, READING, inputs={"data": "azureml://datastores/attacker/paths/x"})
                user.client.delete("/v1/datastores/attacker")
                return f"{fields} was accepted, and {_what_was_read(user, answer)}"
    return ""


def _what_was_read(user: HttpUser, job: dict[str, Any]) -> str:
    if not job.get("output"):
        return f"nothing was read: {job.get('failure')}"
    rows = user.client.get(f"/v1/jobs/{job['id']}/outputs/{Path(job['output']['path']).name}").text
    return f"{PRIVATE} files were read: {rows}" if CANARY in rows else f"this was read: {rows}"


ATTACKS: list[Attack] = [
    Attack("spellings of an input's URL that lead out of its folder", partial(_by_spelling, _ESCAPES)),
    Attack("spellings of an input's URL that only some servers take for dots", partial(_by_spelling, _RARE_ESCAPES)),
    Attack("spellings of URLs in tables, assets and other inputs", _by_documents),
    Attack("patterns and objects of a store that lead out of their folder", _by_pattern),
    Attack("a datastore whose endpoint or prefix leads elsewhere", _by_endpoint),
    Attack("the cluster's own files as the output folder", partial(_as_output, "")),
    Attack("the cluster's own files as a named output file", partial(_as_output, "uri_file")),
    Attack("the cluster's own files as a named output folder", partial(_as_output, "uri_folder")),
    Attack("the cluster's own files as inputs", _as_input),
    Attack("links among the inputs to the cluster's own files", _by_link),
    Attack("a link that a job leaves for the next job", _by_link_of_a_job),
    Attack("a hard link among the outputs", partial(_download, "link")),
    Attack("a symbolic link among the outputs", partial(_download, "symlink")),
    Attack("rows published through a link", _publish_elsewhere),
]
