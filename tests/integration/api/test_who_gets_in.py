"""Who is admitted: by a token, a name of the server, and the origin of a page."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.integration.api.server import ApiServer

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.integration

JOB = "job_" + "0" * 20


def every_request(api: httpx.Client) -> list[tuple[str, str]]:
    """Method and path of everything in the OpenAPI document."""
    document = api.get("/v1/openapi.json", headers={"Authorization": "Bearer right"}).json()
    return [
        (method.upper(), path.replace("{job_id}", JOB).replace("{path}", "x"))
        for path, methods in document["paths"].items()
        for method in methods
    ]


class TestToken:
    def test_no_route_is_open_without_it(self, redis_url: str, tmp_path: Path) -> None:
        with ApiServer(tmp_path, redis_url, "--token", "right") as server, server.client() as api:
            requests = every_request(api)
            assert len(requests) >= 14
            for method, path in [*requests, ("GET", "/v1/openapi.json"), ("GET", "/nowhere"), ("PUT", "/v1/jobs")]:
                is_open = path in ("/livez", "/readyz", "/metrics", "/v1/session")
                for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic right"}):
                    answer = api.request(method, path, headers=headers)
                    assert (answer.status_code == 401) != is_open, (method, path, answer.text)
                    if not is_open:
                        assert answer.headers["content-type"] == "application/problem+json"
                        assert answer.headers["www-authenticate"].startswith("Bearer")
                right = api.request(method, path, headers={"Authorization": "bearer right"})
                assert right.status_code not in (401, 500), (method, path)

    def test_it_comes_from_the_environment_or_a_file(self, redis_url: str, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("from-file\n")
        for flags, env, token in (
            ((), {"PARALLELRUN_TOKEN": "from-env"}, "from-env"),
            (("--token-file", str(tmp_path / "secret")), {}, "from-file"),
        ):
            with ApiServer(tmp_path, redis_url, *flags, insecure=False, env=env) as server, server.client() as api:
                assert api.get("/v1/jobs").status_code == 401
                assert api.get("/v1/jobs", headers={"Authorization": f"Bearer {token}"}).status_code == 200
                server.stop()
            assert token not in "".join(server.raw_log)

    @pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
    def test_one_is_made_for_every_server(self, host: str, redis_url: str, tmp_path: Path) -> None:
        tokens, root, path = [], tmp_path / "root", tmp_path / "state" / "parallelrun" / "token"
        env = {"XDG_STATE_HOME": str(tmp_path / "state")}
        for _ in range(2):
            with (
                ApiServer(root, redis_url, "--host", host, insecure=False, env=env) as server,
                server.client() as api,
            ):
                token = path.read_text().strip()
                assert api.get("/v1/jobs").status_code == 401
                assert api.get("/metrics").status_code == (401 if host == "0.0.0.0" else 200)
                headers = {"Authorization": f"Bearer {token}"}
                assert api.get("/v1/jobs", headers=headers).status_code == 200
                server.stop()
            assert token not in "".join(server.raw_log)
            assert server.log[0]["token_file"] == str(path)
            tokens.append(token)

        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert len(tokens[0]) >= 40
        assert tokens[0] == tokens[1]

    def test_an_empty_token_file_does_not_open_the_door(self, redis_url: str, tmp_path: Path) -> None:
        (tmp_path / "empty").write_text("")
        server = ApiServer(tmp_path, redis_url, "--token-file", str(tmp_path / "empty"), insecure=False)
        server.start()

        server.wait_for("not_started")
        assert server.exit_code() == 1


class TestOrigin:
    @pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "[::2]:80"])
    def test_other_names_are_refused(self, host: str, api: httpx.Client) -> None:
        answer = api.get("/v1/jobs", headers={"Host": host})

        assert (answer.status_code, answer.json()["code"]) == (421, "misdirected")

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:80", "[::1]"])
    def test_own_names(self, host: str, api: httpx.Client) -> None:
        assert api.get("/livez", headers={"Host": host}).status_code == 200

    def test_more_names_can_be_allowed(self, redis_url: str, tmp_path: Path) -> None:
        with (
            ApiServer(tmp_path, redis_url, "--allowed-hosts", "jobs.example, other.example") as server,
            server.client() as api,
        ):
            assert api.get("/livez", headers={"Host": "jobs.example:443"}).status_code == 200
            assert api.get("/livez", headers={"Host": "evil.example"}).status_code == 421

    @pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://[", ""])
    def test_pages_of_other_origins_change_nothing(self, origin: str, api: httpx.Client, job_id: str) -> None:
        answer = api.post(f"/v1/jobs/{job_id}:cancel", headers={"Origin": origin})

        assert (answer.status_code, answer.json()["code"]) == (403, "cross_origin")
        assert api.get(f"/v1/jobs/{job_id}").json()["state"] == "queued"

    def test_pages_of_its_own_origin(self, api: httpx.Client, job_id: str) -> None:
        answer = api.post(f"/v1/jobs/{job_id}:cancel", headers={"Origin": str(api.base_url).rstrip("/")})

        assert answer.status_code == 202

    def test_no_page_may_read_answers(self, api: httpx.Client) -> None:
        answer = api.get("/v1/jobs", headers={"Origin": "https://evil.example"})

        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert api.options("/v1/jobs").status_code == 405
