"""Nobody gets in without the token, and nobody but the API's own user can read it."""

from __future__ import annotations

import json
import os
import stat
import time
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.integration.api.server import ApiServer
from tests.security import path_target
from tests.security.attacks import access
from tests.security.path_target import PathTarget

BY_NAME = {attack.name: attack for attack in access.ATTACKS}
check_attack = partial(path_target.check_attack, BY_NAME, token=PathTarget.token)
_NO_JOB = "job_00000000000000000000"


def check_anonymous(redis_url: str, folder: Path) -> None:
    """A server that was started with nothing but its defaults takes no job from somebody without the token."""
    env = {"XDG_STATE_HOME": str(folder / "state")}
    with ApiServer(folder / "root", redis_url, insecure=False, env=env) as server, server.client() as api:
        spec = {"entry_script": "entry.py", "inputs": {"data": "/"}, "code": str(folder)}
        for headers in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": "Bearer"},
        ):
            assert api.post("/v1/jobs", json=spec, headers=headers).status_code == 401, headers
            for path in ("/v1/jobs", f"/v1/jobs/{_NO_JOB}/outputs/x", "/v1/openapi.json", "/v1/nodes"):
                assert api.get(path, headers=headers).status_code == 401, (path, headers)


@pytest.mark.integration
def test_without_the_token_nobody_gets_in_by_default(redis_url: str, tmp_path: Path) -> None:
    check_anonymous(redis_url, tmp_path)


@pytest.mark.integration
def test_the_token_is_in_a_private_file_and_one_in_the_root_is_void(redis_url: str, tmp_path: Path) -> None:
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    (root / "token").write_text("of-an-earlier-release")
    (root / "token").chmod(0o600)
    env = {"XDG_STATE_HOME": str(state)}
    with ApiServer(root, redis_url, insecure=False, env=env) as server, server.client() as api:
        path = state / "parallelrun" / "token"
        status = path.stat()
        assert (stat.S_IMODE(status.st_mode), status.st_uid) == (0o600, os.geteuid())
        assert not (root / "token").exists()
        [removed] = [entry for entry in server.log if entry["action"] == "old_token_removed"]
        assert removed["file"] == str(root / "token")
        old = {"Authorization": "Bearer of-an-earlier-release"}
        assert api.get("/v1/jobs", headers=old).status_code == 401
        assert api.get("/v1/jobs", headers={"Authorization": f"Bearer {path.read_text().strip()}"}).status_code == 200
        assert path.read_text().strip() not in json.dumps(server.log)


@pytest.mark.integration
def test_who_is_removed_from_the_file_of_tokens_is_turned_away(redis_url: str, tmp_path: Path) -> None:
    check_removal(redis_url, tmp_path)


def check_removal(redis_url: str, folder: Path, without: str = "") -> None:
    """Take the token of one of two away while the server runs, and give one to a third."""
    tokens = folder / "tokens"
    tokens.write_text("anna token-of-anna-0001\nben token-of-ben-00001\n")

    def status(name: str) -> int:
        token = f"Bearer token-of-{name}"
        return api.get("/v1/jobs", headers={"Authorization": token}).status_code

    env = {"XDG_STATE_HOME": str(folder / "state")}
    server = ApiServer(
        folder / "root", redis_url, "--tokens-file", str(tokens), insecure=False, env=env, without=without
    )
    with server, server.client() as api:
        assert [status(name) for name in ("anna-0001", "ben-00001", "eve-00001")] == [200, 200, 401]
        assert not (folder / "state").exists(), "a token of its own, which nobody has asked for"
        tokens.write_text("ben token-of-ben-00001\n# of Eve:\neve token-of-eve-00001\n")
        deadline = time.monotonic() + 10
        while status("anna-0001") != 401:
            assert time.monotonic() < deadline, "Anna can still do everything"
            time.sleep(0.05)
        assert [status(name) for name in ("ben-00001", "eve-00001")] == [200, 200]
        assert api.get("/v1/jobs").status_code == 401


@pytest.mark.integration
@pytest.mark.parametrize("flags", [("--host", "0.0.0.0"), ("--token", "t")], ids=str)
def test_a_server_does_not_start_without_a_token_by_mistake(
    flags: tuple[str, ...], redis_url: str, tmp_path: Path
) -> None:
    server = ApiServer(tmp_path, redis_url, "--insecure", *flags, insecure=False)
    server.start()

    assert "--insecure" in server.wait_for("not_started")["error"]
    assert server.exit_code() == 1


@pytest.mark.integration
@pytest.mark.parametrize("name", BY_NAME)
def test_the_token_is_neither_found_nor_evaded(name: str) -> None:
    check_attack(name)


def check_other_site(redis_url: str, folder: Path, *, without: str = "") -> None:
    """A page of another site lets the browser of somebody who has signed in send requests, with their cookie."""
    with ApiServer(folder, redis_url, "--token", "the-token", without=without) as server, server.client() as browser:
        signed_in = browser.post("/v1/session", json={"token": "the-token"})
        assert "the-token" not in signed_in.headers["set-cookie"]
        # Not all browsers say from which page a request comes.
        assert browser.post("/v1/nodes:check", json={}).status_code == 403
        assert browser.post("/v1/nodes:check", json={}, headers={"X-ParallelRun-Page": "1"}).status_code == 202


@pytest.mark.integration
def test_pages_of_other_sites_change_nothing_with_a_cookie(redis_url: str, tmp_path: Path) -> None:
    check_other_site(redis_url, tmp_path)


@pytest.mark.integration
def test_a_server_for_others_can_be_told_its_names(redis_url: str, tmp_path: Path) -> None:
    flags = ("--host", "0.0.0.0", "--token", "t", "--allowed-hosts", "localhost,127.0.0.1,api,")
    with ApiServer(tmp_path, redis_url, *flags) as server:
        for host, status in (("api:8080", 200), ("127.0.0.1", 200), ("attacker.example", 421), ("10.0.0.1", 421)):
            headers = {"Host": host, "Authorization": "Bearer t"}
            assert httpx.get(f"http://127.0.0.1:{server.port}/v1/jobs", headers=headers).status_code == status


def check_operators(redis_url: str, folder: Path, *, without: str = "") -> None:
    """Who may only run jobs defines no compute, which would decide what an engine starts; operators do."""
    tokens = folder / "tokens"
    tokens.write_text("ann ann-0123456789-secret\nbob bob-0123456789-secret\n")
    flags = ("--token", "the-servers-own-token", "--tokens-file", str(tokens), "--operators", "bob")
    with (
        ApiServer(folder / "root", redis_url, *flags, insecure=False, without=without) as server,
        server.client() as api,
    ):
        made = {}
        for token in ("ann-0123456789-secret", "bob-0123456789-secret", "the-servers-own-token"):
            headers = {"Authorization": f"Bearer {token}"}
            assert api.get("/v1/computes", headers=headers).status_code == 200
            put = api.put("/v1/computes/c1", json={"type": "local", "max_instances": 2}, headers=headers)
            deleted = api.delete("/v1/computes/c1", headers=headers)
            made[token[:3]] = put.status_code, deleted.status_code
        assert made == {"ann": (403, 403), "bob": (201, 204), "the": (201, 204)}
        assert put.json()["name"] == "c1"


@pytest.mark.integration
def test_only_operators_define_computes(redis_url: str, tmp_path: Path) -> None:
    check_operators(redis_url, tmp_path)
