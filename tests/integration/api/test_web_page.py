"""The files of the web page, and who signs in on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration

TOKEN = "the-right-token"
PAGE = {"X-ParallelRun-Page": "1"}


@pytest.fixture(scope="module")
def closed_api(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """A server that requires a token."""
    with ApiServer(tmp_path_factory.mktemp("root"), redis_url, "--token", TOKEN) as server:
        yield server


@pytest.fixture
def browser(closed_api: ApiServer) -> Iterator[httpx.Client]:
    """It keeps cookies, and has no token."""
    with closed_api.client() as client:
        yield client


def sign_in(browser: httpx.Client, **shown: str) -> httpx.Response:
    return browser.post("/v1/session", json=shown)


def check_that_streams_end(redis_url: str, site: Site, folder: Path, *, without: str = "") -> None:
    """Who has signed out, or has no token any more, follows no job, though they began to when they might."""
    tokens = folder / "tokens"
    tokens.write_text("anna anna-has-this-one\nbert bert-has-this-one\n")
    tokens.chmod(0o600)
    flags = ("--tokens-file", str(tokens))
    with (
        ApiServer(folder / "root", redis_url, *flags, insecure=False, without=without) as server,
        server.client() as browser,
    ):
        sign_in(browser, token="anna-has-this-one")
        job = browser.post("/v1/jobs", json=site.spec(), headers=PAGE).raise_for_status().json()["id"]
        path, shown = f"/v1/jobs/{job}/events", {"Authorization": "Bearer anna-has-this-one"}
        with browser.stream("GET", path) as by_cookie, browser.stream("GET", path, headers=shown) as by_token:
            browser.delete("/v1/session").raise_for_status()
            assert_it_ends(by_cookie)
            tokens.write_text("bert bert-has-this-one\n")
            assert_it_ends(by_token)


def assert_it_ends(stream: httpx.Response) -> None:
    """One that goes on shows after a time that it lives."""
    for line in stream.iter_lines():
        assert not line.startswith(":"), "it goes on"


class TestFiles:
    @pytest.mark.parametrize("path", ["/", "/jobs/job_01kav3x8n2h7q5m9c4t6/timeline", "/nodes", "/%3Cscript%3E"])
    def test_any_address_that_a_person_opens_is_the_page(self, path: str, browser: httpx.Client) -> None:
        answer = browser.get(path, headers={"Accept": "text/html,*/*;q=0.8"})

        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert "<title>ParallelRun" in answer.text
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"

    @pytest.mark.parametrize("method", ["GET", "HEAD"])
    def test_who_only_looks_whether_it_is_there_finds_it(self, method: str, browser: httpx.Client) -> None:
        """As `curl -I` and watchers do, which accept anything."""
        answer = browser.request(method, "/")

        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert bool(answer.content) == (method == "GET")

    def test_programs_and_addresses_of_the_api_get_what_they_got_before(self, browser: httpx.Client) -> None:
        html = {"Accept": "text/html"}
        assert browser.get("/nowhere").status_code == 401
        assert browser.get("/v1/jobs").status_code == 401
        assert browser.get("/v1/jobs/job_01kav3x8n2h7q5m9c4t6/logs/readme.txt", headers=html).status_code == 401
        assert browser.post("/v1/jobs", headers=html).status_code == 401
        assert browser.get("/v1/nowhere", headers=html).status_code == 401
        assert browser.get("/azure/nowhere", headers=html).status_code == 401
        assert browser.post("/", headers=html).status_code == 401
        assert "script-src" not in browser.get("/livez").headers["content-security-policy"]

    @pytest.mark.parametrize("path", ["/jobs/job_01kav3x8n2h7q5m9c4t6", "/jobs", "/nodes"])
    def test_a_person_who_opens_an_address_of_the_api_is_sent_to_the_page(
        self, path: str, browser: httpx.Client
    ) -> None:
        """Azure ML's client prints such a link; the page signs in, and stays at this address."""
        sent = browser.get(f"/v1{path}?of=azure-ai-ml", headers={"Accept": "text/html,*/*;q=0.8"})
        assert (sent.status_code, sent.headers["location"], sent.headers["vary"]) == (303, path, "Accept")
        shown = browser.get(sent.headers["location"], headers={"Accept": "text/html"})
        assert "<title>ParallelRun" in shown.text

    def test_an_address_of_the_api_leads_a_person_to_no_other_host(self, browser: httpx.Client) -> None:
        for path in ("/v1/jobs/%2F%2Fevil.example", "/v1//evil.example", "/v1/jobs/%5Cevil.example"):
            answer = browser.get(path, headers={"Accept": "text/html"})
            assert answer.headers.get("location", "/jobs/").startswith("/jobs/"), path

    def test_a_host_that_is_not_ours_gets_no_page(self, browser: httpx.Client) -> None:
        answer = browser.get("/", headers={"Accept": "text/html", "Host": "evil.example"})

        assert answer.status_code == 421

    def test_what_the_browser_has_is_not_sent_again(self, browser: httpx.Client) -> None:
        first = browser.get("/", headers={"Accept": "text/html"})

        again = browser.get("/", headers={"Accept": "text/html", "If-None-Match": first.headers["etag"]})

        assert (again.status_code, again.content) == (304, b"")
        assert first.headers["cache-control"] == "no-cache"


class TestSession:
    def test_a_cookie_stands_for_the_token_until_one_signs_out(self, browser: httpx.Client, site: Site) -> None:
        assert browser.get("/v1/session").json()["is_signed_in"] is False
        assert sign_in(browser, token="wrong").status_code == 401
        assert browser.get("/v1/jobs").status_code == 401

        answer = sign_in(browser, token=f" {TOKEN}\n")

        assert answer.json()["is_signed_in"] is True
        cookie = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert TOKEN not in cookie
        assert browser.get("/v1/session").json() == answer.json() | {"token_name": "default"}
        assert browser.get("/v1/jobs").status_code == 200
        created = browser.post("/v1/jobs", json=site.spec(), headers=PAGE)
        assert created.status_code == 202
        with browser.stream("GET", f"/v1/jobs/{created.json()['id']}/events") as events:
            assert events.status_code == 200  # as EventSource asks: without any header of its own

        assert browser.delete("/v1/session").status_code == 204
        assert browser.get("/v1/jobs").status_code == 401

    def test_a_stream_ends_with_its_session_or_its_token(self, redis_url: str, site: Site, tmp_path: Path) -> None:
        check_that_streams_end(redis_url, site, tmp_path)

    def test_a_change_by_cookie_needs_the_header_that_no_other_site_can_send(
        self, browser: httpx.Client, site: Site
    ) -> None:
        sign_in(browser, token=TOKEN)

        assert browser.post("/v1/jobs", json=site.spec()).json()["code"] == "cross_origin"
        evil = {**PAGE, "Origin": "https://evil.example"}
        assert browser.post("/v1/jobs", json=site.spec(), headers=evil).status_code == 403
        assert browser.post("/v1/session", json={"token": TOKEN}, headers=evil).status_code == 403

    def test_a_cookie_that_was_changed_is_none(self, browser: httpx.Client) -> None:
        name, value = sign_in(browser, token=TOKEN).headers["set-cookie"].partition(";")[0].split("=", 1)
        packed, ends, session_id, mac = value.split(".")
        later = str(int(ends) + 1)
        for wrong in (
            f"{packed}.{later}.{session_id}.{mac}",
            f"{packed}.{ends}.other.{mac}",
            f"{packed}.{ends}.{mac}",
            f"{packed}.{ends}.{session_id}.{mac[:-1]}",
            f"{packed}.{ends}.{session_id}.",
            "é",
            "..",
            "a.1.b",
        ):
            browser.cookies.clear()
            headers = {b"Cookie": f"{name}={wrong}".encode()}
            assert browser.get("/v1/jobs", headers=headers).status_code == 401, wrong
        assert browser.get("/v1/jobs", headers={"Cookie": f"{name}={value}"}).status_code == 200

    def test_a_wrong_token_is_refused_though_there_is_a_cookie(self, browser: httpx.Client) -> None:
        sign_in(browser, token=TOKEN)

        assert browser.get("/v1/jobs", headers={"Authorization": "Bearer wrong"}).status_code == 401

    def test_a_link_signs_in_once(self, closed_api: ApiServer, browser: httpx.Client) -> None:
        answer = browser.post("/v1/session:code", headers={"Authorization": f"Bearer {TOKEN}"}).json()
        assert answer["link"] == f"/#code={answer['code']}"

        assert sign_in(browser, code=answer["code"]).status_code == 200
        assert browser.get("/v1/jobs").status_code == 200
        with closed_api.client() as other:
            assert sign_in(other, code=answer["code"]).status_code == 401
            assert other.post("/v1/session:code").status_code == 401

    def test_it_ends_with_its_token(self, redis_url: str, tmp_path: Path) -> None:
        tokens = tmp_path / "tokens"
        tokens.write_text("anna anna-has-this-one\nbert bert-has-this-one\n")
        tokens.chmod(0o600)
        with (
            ApiServer(tmp_path / "root", redis_url, "--tokens-file", str(tokens), insecure=False) as server,
            server.client() as browser,
        ):
            assert sign_in(browser, token="anna-has-this-one").json()["token_name"] == "anna"
            assert browser.get("/v1/jobs").status_code == 200
            tokens.write_text("bert bert-has-this-one\n")
            deadline = time.monotonic() + 10
            while browser.get("/v1/jobs").status_code != 401:
                assert time.monotonic() < deadline
                time.sleep(0.05)

    def test_where_no_token_is_needed_nobody_has_to(self, api: httpx.Client) -> None:
        shown: dict[str, Any] = api.get("/v1/session").json()

        assert (shown["is_signed_in"], shown["is_token_needed"]) == (True, False)
