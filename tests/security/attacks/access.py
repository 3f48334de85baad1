"""How a token could become known, or be evaded with the help of a browser."""

from __future__ import annotations

import time
from typing import Any, Final

import httpx

from tests.acceptance.http_user import HttpUser, zip_of
from tests.security.attack import Attack, NotPlayable, Target
from tests.security.attacks.people import two_people
from tests.security.target import ONE

_PAGE: Final = "X-ParallelRun-Page"
_CLEARED_UP_S: Final = 60.0
_ML: Final = "https://ml.azure.com"
_WORKSPACE: Final = "/azure/subscriptions/s/resourceGroups/g/providers/Microsoft.MachineLearningServices/workspaces/w"


def _foreign_host(target: Target) -> str:
    """A page whose name was pointed at this server, with the credentials of the user (DNS rebinding)."""
    with httpx.Client(base_url=target.url, timeout=20, trust_env=False) as client:
        for host in ("attacker.example", "attacker.example:8080", "127.0.0.1.attacker.example", ""):
            headers = {"Authorization": f"Bearer {target.token}", "Host": host}
            status = client.get("/v1/jobs", headers=headers).status_code
            if status != 421:
                return f"a request for {host!r} is answered with {status}"
    return ""


def _token_in_root(target: Target) -> str:
    """User code searches what it shares with the services."""
    script = f"""
import os
def run(mini_batch):
    rows = []
    for name in os.listdir({target.root!r}):
        path = os.path.join({target.root!r}, name)
        if os.path.isfile(path) and os.access(path, os.R_OK):
            rows.append(f"file {{name}}: {{open(path, 'rb').read(100)!r}}")
    return rows or ["nothing"]
"""
    rows = target.rows_of(script)
    return "; ".join(row for row in rows if target.token in row or row.startswith("file token"))


def _signed_out(target: Target) -> str:
    """Show a cookie again that somebody has left behind by signing out."""
    with _browser(target) as browser, _browser(target) as thief:
        browser.post("/v1/session", json={"token": target.token}).raise_for_status()
        cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        shown = {"Cookie": cookie}
        assert thief.get("/v1/jobs", headers=shown).status_code == 200
        browser.delete("/v1/session").raise_for_status()
        status = thief.get("/v1/jobs", headers=shown).status_code
        return f"after signing out, a cookie is answered with {status}" if status != 401 else ""


def _from_a_cookie(target: Target) -> str:
    """Make links with a cookie that somebody has left behind, and use one of them, before they sign out."""
    with _browser(target) as browser, _browser(target) as thief, _browser(target) as later:
        browser.post("/v1/session", json={"token": target.token}).raise_for_status()
        shown = {"Cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items()), _PAGE: "1"}
        codes = [browser.post("/v1/session:code", headers=shown).raise_for_status().json()["code"] for _ in range(2)]
        thief.post("/v1/session", json={"code": codes[0]}).raise_for_status()
        assert thief.get("/v1/jobs").status_code == 200
        browser.delete("/v1/session").raise_for_status()
        statuses = thief.get("/v1/jobs").status_code, later.post("/v1/session", json={"code": codes[1]}).status_code
        return f"after signing out, links made before are answered with {statuses}" if {*statuses} != {401} else ""


def _link_again(target: Target) -> str:
    """Open a link that somebody has used, as it is in their history or was read over their shoulder."""
    with _browser(target) as owner, _browser(target) as thief:
        answer = owner.post("/v1/session:code", headers={"Authorization": f"Bearer {target.token}"})
        code = answer.raise_for_status().json()["code"]
        owner.post("/v1/session", json={"code": code}).raise_for_status()
        status = thief.post("/v1/session", json={"code": code}).status_code
        if status != 401:
            return f"a link that was used is answered with {status}"
        status = owner.get("/v1/jobs").status_code
        return f"then the browser that had used it is answered with {status}" if status != 200 else ""


def _deleted(target: Target) -> str:
    """Read what there was of a job, by all paths that were good a moment ago, once it is deleted."""
    with HttpUser(target.url, target.token) as user:
        spec = {"entry_script": "entry.py", "inputs": {"data": f"{target.inputs_there}/{ONE}"}}
        job_id = user.submit(spec, zip_of({"entry.py": "def run(mini_batch):\n    return ['canary']\n"}))
        user.completed(job_id)
        job = f"/v1/jobs/{job_id}"
        paths = [job, f"{job}/mini-batches", f"{job}/settings", f"{job}/metrics"]
        for kind in ("logs", "outputs"):
            files = user.client.get(f"{job}/{kind}").raise_for_status().json()["items"]
            paths += [f"{job}/{kind}", *(f"{job}/{kind}/{each['path']}" for each in files)]
        until = time.monotonic() + _CLEARED_UP_S
        while user.client.delete(job).status_code == 503 and time.monotonic() < until:
            time.sleep(0.1)  # it has just ended
        answered = [path for path in paths if user.client.get(path).status_code != 404]
        read_again = {**spec, "inputs": {"data": f"{target.root}/jobs/{job_id}/outputs"}}
        status = user.post(
            read_again, zip_of({"entry.py": "def run(mini_batch):\n    return mini_batch\n"})
        ).status_code
        answered += ["another job that reads its outputs"] if status == 202 else []
        return f"of a deleted job, there still is {', '.join(answered)}" if answered else ""


def _by_the_other_door(target: Target) -> str:
    """Define and delete, as somebody who may only submit, what is the cluster's: by either of the two doors."""
    with _browser(target) as api:
        as_admin = {"Authorization": f"Bearer {target.token}"}
        made = api.put("/v1/tokens/mallory", json={"scopes": ["submit"], "replace": True}, headers=as_admin)
        if made.status_code != 201:
            raise NotPlayable("this server makes no tokens")
        token = made.json()["token"]
        handed_out = api.get(f"/azure/identity?resource={_ML}", headers={"X-IDENTITY-HEADER": token})
        doors = {
            "/v1": {"Authorization": f"Bearer {token}"},
            _WORKSPACE: {"Authorization": f"Bearer {handed_out.raise_for_status().json()['access_token']}"},
        }
        definition = {"type": "azure_blob", "account_name": "theirs", "container_name": "c"}
        properties = {"datastoreType": "AzureBlob", "accountName": "theirs", "containerName": "c"}
        answered = [
            f"{method} {door.rpartition('/')[0]}…/datastores is answered with {status}"
            for door, shown in doors.items()
            for method, body in (("PUT", {**definition, "properties": properties}), ("DELETE", None))
            if (status := api.request(method, f"{door}/datastores/lake", json=body, headers=shown).status_code) != 403
        ]
        api.delete("/v1/tokens/mallory", headers=as_admin)
        return "; ".join(answered)


def _handed_out(target: Target) -> str:
    """Show what a server has handed out for a token that was taken back since: a cookie, a link, a token and a
    signature of the door for another client; also where another token has its name."""
    with HttpUser(target.url, target.token) as admin, _browser(target) as browser:
        made = admin.client.put("/v1/tokens/mallory", json={"scopes": ["submit"], "replace": True})
        if made.status_code != 201:
            raise NotPlayable("this server makes no tokens")
        try:
            token = made.json()["token"]
            browser.post("/v1/session", json={"token": token}).raise_for_status()
            answer = browser.post("/v1/session:code", headers={"Authorization": f"Bearer {token}"})
            code = answer.raise_for_status().json()["code"]
            handed_out = browser.get(f"/azure/identity?resource={_ML}", headers={"X-IDENTITY-HEADER": token})
            bearer = {"Authorization": f"Bearer {handed_out.raise_for_status().json()['access_token']}"}
            signed = browser.post(f"{_WORKSPACE}/datastores/workspaceblobstore/listSecrets", json={}, headers=bearer)
            signature = signed.raise_for_status().json()["sasToken"]
            listing = f"/azure/blob/store/azureml-blobstore?restype=container&comp=list&{signature}"

            def statuses() -> dict[str, int]:
                return {
                    "a cookie": browser.get("/v1/jobs").status_code,
                    "a token of the other door": browser.get(f"{_WORKSPACE}/jobs", headers=bearer).status_code,
                    "a signature": browser.get(listing).status_code,
                }

            assert set(statuses().values()) == {200}, statuses()
            for changed in (
                admin.client.put("/v1/tokens/mallory", json={"scopes": ["submit"], "replace": True}),
                admin.client.delete("/v1/tokens/mallory"),
            ):
                changed.raise_for_status()
                link = browser.post("/v1/session", json={"code": code})
                after = {**statuses(), "a link": link.status_code}
                if open_still := {what: status for what, status in after.items() if status not in (401, 403)}:
                    return f"after {changed.request.method} of its token: {open_still}"
        finally:
            admin.client.delete("/v1/tokens/mallory")
    return ""


def _of_the_cluster(target: Target) -> str:
    """Change, as somebody who may only submit, what all jobs of the cluster depend on."""
    with two_people(target) as (_, thief):
        requests: tuple[tuple[str, str, dict[str, Any] | None], ...] = (
            ("PUT", "/v1/limits/paid", {"requests_per_minute": 1_000_000}),
            ("DELETE", "/v1/limits/paid", None),
            ("PUT", "/v1/quotas/everybody", {"jobs": 0}),
            ("PUT", f"/v1/quotas/{thief.name}", {"jobs": 1_000_000}),
            ("DELETE", f"/v1/quotas/{thief.name}", None),
            ("PUT", f"/v1/tokens/{thief.name}", {"scopes": ["admin"], "replace": True}),
            ("DELETE", "/v1/tokens/somebody", None),
            ("PUT", "/v1/computes/pool", {"type": "local", "max_instances": 2}),
            ("PUT", "/v1/datastores/lake", {"type": "azure_blob", "account_name": "theirs", "container_name": "c"}),
            ("POST", "/v1/nodes/node000:drain", {}),
            ("POST", "/v1/admin:prune", {}),
            ("GET", "/v1/tokens", None),
            ("GET", "/v1/admin/usage", None),
        )
        client = thief.user.client
        answers = [client.request(method, path, json=body) for method, path, body in requests]
    answered = [
        f"{each.request.method} {each.url.path}: {each.status_code}" for each in answers if each.status_code != 403
    ]
    return "; ".join(answered)


def _browser(target: Target) -> httpx.Client:
    return httpx.Client(base_url=target.url, timeout=20, trust_env=False)


ATTACKS: list[Attack] = [
    Attack("a name of somebody else for this server", _foreign_host),
    Attack("a cookie of somebody who has signed out", _signed_out),
    Attack("links made with a cookie of somebody who has signed out", _from_a_cookie),
    Attack("a link to sign in that somebody has used", _link_again),
    Attack("what there was of a job that is deleted", _deleted),
    Attack("a datastore of the cluster, by the door for another client", _by_the_other_door),
    Attack("what was handed out for a token that was taken back", _handed_out),
    Attack("what all jobs depend on, by who may only submit", _of_the_cluster),
    Attack("the token in the folder that all share", _token_in_root),
]
