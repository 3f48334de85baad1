"""Several people on one server: whose things are whose."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi.routing import APIRoute

from parallelrun_api.azure import (
    assets,
    computes,
    endpoint_jobs,
    endpoints,
    history,
    jobs,
    routes,
    schedules,
    workspace,
)
from parallelrun_api.azure.facade import READS
from parallelrun_core.folder.job_folder import JobFolder
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer, beat

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration


def client_of(server: ApiServer, token: str) -> httpx.Client:
    return server.client(headers={"Authorization": f"Bearer {token}"})


def accepted(answer: httpx.Response) -> dict[str, Any]:
    assert answer.status_code in (200, 201, 202), answer.text
    body: dict[str, Any] = answer.json()
    return body


class TestNamesInAFile:
    @pytest.fixture
    def server(self, redis_url: str, tmp_path: Path) -> Iterator[ApiServer]:
        tokens = tmp_path / "tokens"
        tokens.write_text("anna anna-has-this-one\nbert bert-has-this-one\n")
        tokens.chmod(0o600)
        with ApiServer(
            tmp_path / "root", redis_url, "--tokens-file", str(tokens), "--token", "of-the-operator", insecure=False
        ) as server:
            yield server

    def test_what_is_made_belongs_to_who_made_it(self, server: ApiServer, site: Site) -> None:
        schedule = {"trigger": {"type": "cron", "expression": "30 2 * * *"}, "create_job": site.spec()}
        with client_of(server, "anna-has-this-one") as anna, client_of(server, "bert-has-this-one") as bert:
            made = [
                accepted(anna.post("/v1/jobs", json=site.spec())),
                accepted(anna.put("/v1/schedules/nightly", json=schedule)),
                accepted(anna.put("/v1/batch-endpoints/iris", json={"name": "iris"})),
                accepted(
                    anna.post("/v1/assets/data/rows/versions", json={"type": "uri_folder", "path": str(site.data)})
                ),
            ]
            assert [each["owner"] for each in made] == ["anna"] * 4
            assert JobFolder(server.root, made[0]["id"]).record().owner == "anna"
            # Whoever changes it later, it stays hers, and so do the jobs that it makes.
            assert accepted(bert.put("/v1/schedules/nightly", json=schedule))["owner"] == "anna"
            assert accepted(bert.post("/v1/schedules/nightly:trigger"))["owner"] == "anna"
            assert accepted(bert.put("/v1/batch-endpoints/iris", json={"name": "iris"}))["owner"] == "anna"

    def test_a_list_of_one_persons_jobs(self, server: ApiServer, site: Site) -> None:
        with client_of(server, "anna-has-this-one") as anna, client_of(server, "of-the-operator") as operator:
            hers = accepted(anna.post("/v1/jobs", json=site.spec()))["id"]
            operators = accepted(operator.post("/v1/jobs", json=site.spec()))
            assert operators["owner"] == ""
            listed = {
                owner: {each["id"] for each in accepted(anna.get("/v1/jobs", params={"owner": owner}))["items"]}
                for owner in ("anna", "", "bert")
            }
            assert listed == {"anna": {hers}, "": {operators["id"]}, "bert": set()}
            assert len(accepted(anna.get("/v1/jobs"))["items"]) == 2


def test_without_names_nothing_has_an_owner(api: httpx.Client, job_id: str) -> None:
    assert accepted(api.get(f"/v1/jobs/{job_id}"))["owner"] == ""


OPERATOR = "of-the-operator"
_PLACES = {
    "{job_id}": "{job}", "{schedule}": "nightly", "{endpoint}": "iris", "{deployment}": "blue", "{kind}": "data",
    "{asset}": "rows", "{version}": "1", "{label}": "best", "{path}": "x", "{datastore}": "lake", "{name}": "bert",
    "{limit}": "api", "{compute}": "pool", "{node}": "n", "{mini_batch}": "0",
}  # fmt: skip


def with_values(path: str, job_id: str) -> str:
    for place, value in _PLACES.items():
        path = path.replace(place, value.replace("{job}", job_id))
    return path


class People:
    """Anna and Bert, who may submit, and Rita, who may only read."""

    def __init__(self, server: ApiServer, clients: ExitStack) -> None:
        self.server = server
        self.clients = clients
        self.operator = clients.enter_context(client_of(server, OPERATOR))
        self.anna = self.new("anna", "submit")
        self.bert = self.new("bert", "submit")
        self.rita = self.new("rita", "read")

    def new(self, name: str, scope: str) -> httpx.Client:
        made = accepted(self.operator.put(f"/v1/tokens/{name}", json={"scopes": [scope]}))
        return self.clients.enter_context(client_of(self.server, made["token"]))

    def things_of_anna(self, site: Site) -> str:
        """Make one of each; returns the id of the job."""
        schedule = {"trigger": {"type": "cron", "expression": "30 2 * * *"}, "create_job": site.spec()}
        deployment = {"job": site.spec()}
        accepted(self.anna.put("/v1/schedules/nightly", json=schedule))
        accepted(self.anna.put("/v1/batch-endpoints/iris", json={"name": "iris"}))
        assert self.anna.put("/v1/batch-endpoints/iris/deployments/blue", json=deployment).status_code in (201, 422)
        asset = {"type": "uri_folder", "path": str(site.data)}
        accepted(self.anna.post("/v1/assets/data/rows/versions", json=asset))
        return str(accepted(self.anna.post("/v1/jobs", json=site.spec()))["id"])


def served(redis_url: str, root: Path, *flags: str, without: str = "") -> ApiServer:
    return ApiServer(root, redis_url, "--token", OPERATOR, *flags, insecure=False, without=without)


class TestWhoMayDoWhat:
    @pytest.fixture
    def people(self, redis_url: str, tmp_path: Path) -> Iterator[People]:
        with served(redis_url, tmp_path / "root") as server, ExitStack() as clients:
            yield People(server, clients)

    def test_people_see_everything_and_change_their_own(self, people: People, site: Site) -> None:
        job_id = people.things_of_anna(site)
        for reader in (people.bert, people.rita):
            assert accepted(reader.get(f"/v1/jobs/{job_id}"))["owner"] == "anna"
            assert len(accepted(reader.get("/v1/schedules"))["items"]) == 1
        refused = people.bert.post(f"/v1/jobs/{job_id}:cancel")
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
        assert "belongs to 'anna'" in refused.json()["detail"]
        read_only = people.rita.post("/v1/jobs", json=site.spec())
        assert (read_only.status_code, read_only.json()["code"]) == (403, "not_allowed")
        assert "may not submit" in read_only.json()["detail"]
        assert people.anna.post(f"/v1/jobs/{job_id}:cancel").status_code == 202

    def test_an_admin_changes_everything(self, people: People, site: Site) -> None:
        job_id = people.things_of_anna(site)
        carla = people.new("carla", "admin")
        assert carla.post(f"/v1/jobs/{job_id}:cancel").status_code == 202
        assert carla.delete("/v1/schedules/nightly").status_code == 204
        assert people.bert.put("/v1/tokens/dora", json={}).status_code == 403
        assert people.bert.get("/v1/tokens").status_code == 403
        assert carla.put("/v1/tokens/dora", json={}).json()["created_by"] == "carla"

    def test_each_person_has_keys_of_their_own(self, people: People, site: Site) -> None:
        headers = {"Idempotency-Key": "nightly"}
        anna, bert = (
            accepted(each.post("/v1/jobs", json=site.spec(), headers=headers)) for each in (people.anna, people.bert)
        )
        assert (anna["owner"], bert["owner"]) == ("anna", "bert")


def test_no_route_changes_what_is_anothers(redis_url: str, tmp_path: Path, site: Site) -> None:
    check_no_route_changes_what_is_anothers(redis_url, tmp_path / "root", site)


def check_no_route_changes_what_is_anothers(redis_url: str, root: Path, site: Site, *, without: str = "") -> None:
    with served(redis_url, root, without=without) as server, ExitStack() as clients:
        _check_each_route(People(server, clients), site)


def _check_each_route(people: People, site: Site) -> None:
    job_id = people.things_of_anna(site)
    paths: dict[str, dict[str, Any]] = accepted(people.operator.get("/v1/openapi.json"))["paths"]
    tried = 0
    for path, methods in paths.items():
        is_hers = any(
            place in path for place in ("{job_id}", "{schedule}", "{endpoint}", "{asset}", "{datastore}", "{limit}")
        )
        for method in sorted(set(methods) - {"get", "head", "parameters"}):
            if is_hers and not path.endswith(":invoke"):
                tried += 1
                answer = people.bert.request(method.upper(), with_values(path, job_id), json={})
                assert answer.status_code == 403, (method, path, answer.text)
                assert "belongs to" in answer.json()["detail"], (method, path)
    assert tried >= 20
    assert accepted(people.anna.get(f"/v1/jobs/{job_id}"))["state"] == "queued"


_OF_CLIENT = {
    "/jobs/{name}": "{job}", "/runs/{name}": "{job}", "/schedules/{name}": "nightly", "/batchEndpoints/{name}": "iris",
    "/datastores/{name}": "lake", "/{kind:kind}/{name:asset}": "rows",
}  # fmt: skip
"""What each path of Azure's client is about, with one of Anna's, or of the cluster's."""
_OF_EVERYBODY = {
    "write_blob",
    "put_compute",
    "delete_compute",
    "azure_unknown",
    "invoke_batch_endpoint",
}
"""Routes that make something of one's own, or are for operators alone."""


def check_no_route_of_azures_client_changes_what_is_anothers(
    redis_url: str, root: Path, site: Site, *, without: str = ""
) -> None:
    with served(redis_url, root, without=without) as server, ExitStack() as clients:
        people = People(server, clients)
        job_id = people.things_of_anna(site)
        bert = accepted(people.operator.put("/v1/tokens/bert", json={"scopes": ["submit"], "replace": True}))["token"]
        with server.client() as client:
            client.headers["Authorization"] = f"Bearer {azure_token(client, bert)}"
            changes = [each for each in paths_of_client(job_id, but=_OF_EVERYBODY) if each[0] not in ("GET", "HEAD")]
            for method, path in changes:
                answer = client.request(method, path, json={"properties": {"description": "mine"}})
                assert answer.status_code == 403, (method, path, answer.text)
            assert len(changes) >= 12


def paths_of_client(job_id: str, *, but: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """The methods and paths that Azure's client asks for, about what is Anna's; but for routes of these names."""
    for module in (workspace, computes, jobs, history, assets, schedules, endpoint_jobs, endpoints, routes):
        for route in module.router.routes:
            assert isinstance(route, APIRoute)
            if route.name in but or (but and READS in route.tags):
                continue
            path, about = route.path, [each for each in _OF_CLIENT if each in route.path]
            assert about or "GET" in (route.methods or ()) or not but, f"nobody knows whose {path} is"
            for each in about:
                name = _OF_CLIENT[each].replace("{job}", job_id)
                path = path.replace(each, each.replace("{name}", name).replace("{name:asset}", name))
            path = re.sub(r"\{[^}]*\}", "x", path.replace("{kind:kind}", "data").replace("{version}", "1"))
            for method in route.methods or ():
                yield method, path


def test_no_route_of_azures_client_changes_what_is_anothers(redis_url: str, tmp_path: Path, site: Site) -> None:
    check_no_route_of_azures_client_changes_what_is_anothers(redis_url, tmp_path / "root", site)


class TestOnlyOnesOwn:
    @pytest.fixture
    def people(self, redis_url: str, tmp_path: Path) -> Iterator[People]:
        with served(redis_url, tmp_path / "root", "--visibility", "own") as server, ExitStack() as clients:
            yield People(server, clients)

    def test_what_is_anothers_is_not_there(self, people: People, site: Site) -> None:
        check_what_is_anothers(people, site)

    def test_no_answer_tells_of_anothers_job(self, people: People, site: Site, redis: Redis) -> None:
        check_no_answer_tells_of_anothers_job(people, site, redis)


def check_what_is_anothers(people: People, site: Site) -> None:
    """Ask for all that is Anna's, as somebody who sees only their own."""
    job_id = people.things_of_anna(site)
    paths: dict[str, dict[str, Any]] = accepted(people.operator.get("/v1/openapi.json"))["paths"]
    for path, methods in paths.items():
        if "get" in methods and any(place in path for place in ("{job_id}", "{schedule}", "{endpoint}")):
            answer = people.bert.get(with_values(path, job_id))
            assert answer.status_code == 404, (path, answer.text)
    for path in ("/v1/jobs", "/v1/schedules", "/v1/batch-endpoints"):
        assert accepted(people.bert.get(path))["items"] == [], path
        assert len(accepted(people.anna.get(path))["items"]) == 1, path
        assert len(accepted(people.operator.get(path))["items"]) == 1, path
    for path, name in (("/v1/schedules", "nightly"), ("/v1/batch-endpoints", "iris")):
        told = [client.get(f"{path}/{name}x") for client in (people.anna, people.bert)]
        assert [(answer.status_code, f"{name!r}?" in answer.json()["detail"]) for answer in told] == [
            (404, True), (404, False),
        ], "errors name only what somebody sees"  # fmt: skip
        assert name not in told[1].json()["detail"].partition(":")[2]
    resumed = people.bert.post("/v1/jobs", json=site.spec(resume_from=job_id))
    assert "there is no job" in resumed.text
    assert people.bert.post(f"/v1/jobs/{job_id}:cancel").status_code == 404
    own_id = accepted(people.bert.post("/v1/jobs", json=site.spec()))["id"]
    compared = people.bert.get(f"/v1/jobs/{own_id}/comparison", params={"other": job_id})
    assert compared.status_code == 404, compared.text
    like = {"trigger": {"type": "cron", "expression": "30 2 * * *"}, "create_job": f"azureml:{job_id}"}
    assert "there is no job" in people.bert.put("/v1/schedules/mine", json=like).text


def check_no_answer_tells_of_anothers_job(people: People, site: Site, redis: Redis) -> None:
    """Ask by each route of both doors, while a node works for Anna's job, and give its outputs to a job of Bert's."""
    people.things_of_anna(site)
    words = {"name": "canary-of-anna", "inputs": {"data": {"type": "uri_folder", "path": "azureml:rows:1"}}}
    job_id = str(accepted(people.anna.post("/v1/jobs", json=site.spec(**words)))["id"])
    beat(redis, workers={job_id: 2})
    [node] = accepted(people.anna.get("/v1/nodes"))["items"]
    assert node["work"] == [{"job": job_id, "name": "canary-of-anna", "workers": 2, "owner": "anna"}]
    paths: dict[str, dict[str, Any]] = accepted(people.operator.get("/v1/openapi.json"))["paths"]
    asked = [with_values(path, job_id) for path, methods in paths.items() if "get" in methods]
    answers = [people.bert.get(path) for path in asked]
    with people.server.client() as client:
        bert = accepted(people.operator.put("/v1/tokens/bert", json={"scopes": ["submit"], "replace": True}))["token"]
        client.headers["Authorization"] = f"Bearer {azure_token(client, bert)}"
        asked = [path for method, path in paths_of_client(job_id) if method == "GET"]
        answers += [client.get(path) for path in asked]
        people.bert.headers["Authorization"] = f"Bearer {bert}"
    tells = [answer.url.path for answer in answers if answer.is_success and _tells_of(answer.text, job_id)]
    assert tells == []
    assert len(answers) > 80
    outputs = site.folder / "root" / "jobs" / job_id / "outputs"
    outputs.mkdir(exist_ok=True)
    (outputs / "rows.csv").write_text("a,b\n1,canary-of-anna\n")
    (site.data / "link").symlink_to(outputs)
    for path in (str(outputs), f"{outputs}/rows.csv", f"{outputs}/../outputs", str(site.data / "link")):
        for route in ("/v1/jobs", "/v1/jobs:preview", "/v1/jobs:plan", "/v1/jobs:check"):
            refused = people.bert.post(route, json=site.spec(inputs={"data": path}))
            assert (refused.status_code, "there is no job" in refused.text) == (422, True), (route, path, refused.text)
            assert "there is no job" not in people.anna.post(route, json=site.spec(inputs={"data": path})).text


def _tells_of(text: str, job_id: str) -> bool:
    return job_id in text or "canary-of-anna" in text


def azure_token(client: httpx.Client, text: str) -> str:
    """What Azure's client gets for a token."""
    url = "/azure/identity?resource=https://ml.azure.com"
    return str(accepted(client.get(url, headers={"X-IDENTITY-HEADER": text}))["access_token"])


class TestTokens:
    def test_it_is_shown_once_and_stored_as_a_hash(self, redis_url: str, tmp_path: Path) -> None:
        root = tmp_path / "root"
        with served(redis_url, root) as server, client_of(server, OPERATOR) as operator, ExitStack() as clients:
            text = accepted(operator.put("/v1/tokens/anna", json={"days": 1}))["token"]
            assert text.startswith("prt_")
            assert operator.put("/v1/tokens/anna", json={}).status_code == 409
            [listed] = accepted(operator.get("/v1/tokens"))["items"]
            assert listed == listed | {"name": "anna", "scopes": ["read", "submit"], "is_valid": True}
            stored = b"".join(path.read_bytes() for path in (root / "tokens").iterdir())
            assert text.encode() not in stored
            assert text not in "".join(server.raw_log)
            again = accepted(operator.put("/v1/tokens/anna", json={"replace": True}))["token"]
            with client_of(server, text) as old, client_of(server, again) as new:
                assert (old.get("/v1/jobs").status_code, new.get("/v1/jobs").status_code) == (401, 200)
                browser = clients.enter_context(server.client())
                signed_in = browser.post("/v1/session", json={"token": again})
                assert (signed_in.json()["scopes"], signed_in.json()["has_people"]) == (["read", "submit"], True)
                assert operator.delete("/v1/tokens/anna").status_code == 204
                assert new.get("/v1/jobs").status_code == 401
                assert browser.get("/v1/jobs").status_code == 401
            assert operator.delete("/v1/tokens/anna").status_code == 404

    def test_one_that_somebody_has_put_there_lets_nobody_in(self, redis_url: str, tmp_path: Path) -> None:
        check_forged(redis_url, tmp_path / "root")

    def test_the_one_of_an_embedded_cluster_shows_no_people(self, redis_url: str, tmp_path: Path) -> None:
        with served(redis_url, tmp_path / "root") as server, server.client() as browser:
            assert browser.post("/v1/session", json={"token": OPERATOR}).json()["has_people"] is False

    def test_a_server_without_a_secret_makes_none(self, redis_url: str, tmp_path: Path) -> None:
        with ApiServer(tmp_path / "root", redis_url) as server, server.client() as api:
            refused = api.put("/v1/tokens/anna", json={})
            assert (refused.status_code, "--insecure" in refused.json()["detail"]) == (409, True)


def check_forged(redis_url: str, root: Path, *, without: str = "") -> None:
    """Code of jobs that writes a token into the root folder gets in nowhere."""
    with served(redis_url, root, without=without) as server, client_of(server, OPERATOR) as operator:
        accepted(operator.put("/v1/tokens/anna", json={}))
        stored = json.loads((root / "tokens" / "anna.json").read_bytes())
        digest = hashlib.sha256(b"prt_forged").hexdigest()
        forged = {**stored, "name": "mallory", "sha256": digest, "scopes": ["read", "submit", "admin"]}
        (root / "tokens" / "mallory.json").write_text(json.dumps(forged))
        (root / "tokens" / "anna.json").write_text(json.dumps({**stored, "sha256": digest}))
        accepted(operator.get("/v1/tokens"))  # all are read anew
        with client_of(server, "prt_forged") as mallory:
            assert mallory.get("/v1/jobs").status_code == 401


class TestBehindAProxy:
    def test_a_proxy_that_is_trusted_says_who_it_is(self, redis_url: str, tmp_path: Path, site: Site) -> None:
        root, page = tmp_path / "root", {"X-ParallelRun-Page": "1"}
        with served(redis_url, root, "--trusted-proxies", "127.0.0.0/8", "--proxy-user-header", "X-User") as server:
            with server.client(headers={"X-User": "anna@example.org"}) as anna:
                assert anna.post("/v1/jobs", json=site.spec()).status_code == 403, "any page could make it"
                job = accepted(anna.post("/v1/jobs", json=site.spec(), headers=page))
                assert job["owner"] == "anna@example.org"
                session = accepted(anna.get("/v1/session"))
                assert (session["is_signed_in"], session["token_name"]) == (True, "anna@example.org")
                assert session["scopes"] == ["read", "submit"]
                assert anna.get("/v1/tokens").status_code == 403
            with server.client(headers={"X-User": "bert"}) as bert:
                assert bert.post(f"/v1/jobs/{job['id']}:cancel", headers=page).status_code == 403
            with client_of(server, "wrong") as wrong:
                assert wrong.get("/v1/jobs", headers={"X-User": "anna"}).status_code == 401
            for name in ("default", "", "a b", "\xe4"):
                with server.client() as nobody:
                    assert nobody.get("/v1/jobs", headers={b"X-User": name.encode("latin-1")}).status_code == 401

    def test_nobody_else_does(self, redis_url: str, tmp_path: Path) -> None:
        for flags in ((), ("--trusted-proxies", "192.0.2.0/24")):
            with served(redis_url, tmp_path / "root", *flags) as server, server.client() as api:
                headers = {"X-Forwarded-User": "anna"}
                assert api.get("/v1/jobs", headers=headers).status_code == 401
                assert accepted(api.get("/v1/session", headers=headers))["is_signed_in"] is False
