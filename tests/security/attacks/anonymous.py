"""What somebody without the token, or a page in a browser, can ask of the API."""

from __future__ import annotations

import json
import re

import httpx

from tests.security.attack import Attack, Target

_OPEN = {("get", "/livez"), ("get", "/readyz"), ("get", "/metrics")}
"""For probes; figures are open only on a loopback interface, and name nobody's job."""
_OF_A_BROWSER = {(method, "/v1/session") for method in ("get", "post", "delete")}
"""Whether a browser is signed in, its way in and its way out; none tells or changes anything of others."""
_NO_JOB = "job_00000000000000000000"


def _walk(target: Target) -> str:
    """Every route without a token, and with a wrong one."""
    with httpx.Client(base_url=target.url, timeout=20, trust_env=False) as client:
        own = {"Authorization": f"Bearer {target.token}"}
        contract = client.get("/v1/openapi.json", headers=own).raise_for_status().json()
        for path, methods in contract["paths"].items():
            address = path.replace("{job_id}", _NO_JOB).replace("{path}", "x").replace("{mini_batch}", "0")
            for method in methods:
                for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {target.token}"}):
                    status = client.request(method.upper(), address, headers=headers).status_code
                    if (method, path) not in _OPEN | _OF_A_BROWSER and status != 401:
                        return f"{method.upper()} {path} answers {status}"
        if client.get("/v1/openapi.json").status_code == 200:
            return "the contract is told to anybody"
        if client.get("/v1/session").json()["is_signed_in"]:
            return "a browser without a cookie is signed in"
        for shown in ({}, {"token": "wrong"}, {"code": "wrong"}, {"token": ""}):
            if (status := client.post("/v1/session", json=shown).status_code) != 401:
                return f"a browser that shows {shown} is answered with {status}"
        figures = client.get("/metrics")
        if figures.status_code == 200 and re.search(r"job_[0-9a-z]{20}", figures.text):
            return "/metrics names jobs"
    return ""


def _submit(target: Target) -> str:
    files = {"spec": (None, json.dumps({"entry_script": "entry.py", "inputs": {"data": "/"}}))}
    with httpx.Client(base_url=target.url, timeout=20, trust_env=False) as client:
        status = client.post("/v1/jobs", files=files).status_code
    return "" if status == 401 else f"a submission without a token is answered with {status}"


def _foreign_origin(target: Target) -> str:
    """A page that a browser has open asks with the user's credentials."""
    headers = {"Authorization": f"Bearer {target.token}", "Origin": "https://attacker.example"}
    with httpx.Client(base_url=target.url, headers=headers, timeout=20, trust_env=False) as client:
        status = client.post(f"/v1/jobs/{_NO_JOB}:cancel").status_code
    return "" if status == 403 else f"another origin's POST is answered with {status}"


ATTACKS = [
    Attack("every route without a token", _walk),
    Attack("a submission without a token", _submit),
    Attack("a page of another origin", _foreign_origin),
]
