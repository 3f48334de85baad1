"""Azure ML's own client gets in by the same token as everybody, and nobody else does."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest

from parallelrun_api.azure import credentials
from tests.security.azure_target import ML, TOKEN, UPLOADS, WORKSPACE, AzureTarget, azure_target

pytestmark = pytest.mark.integration

ROUTES = [
    ("GET", WORKSPACE),
    ("GET", f"{WORKSPACE}/jobs"),
    ("GET", f"{WORKSPACE}/jobs/x"),
    ("PUT", f"{WORKSPACE}/jobs/x"),
    ("POST", f"{WORKSPACE}/jobs/x/cancel"),
    ("GET", f"{WORKSPACE}/datastores"),
    ("POST", f"{WORKSPACE}/datastores/workspaceblobstore/listSecrets"),
    ("GET", f"{WORKSPACE}/computes/x"),
    ("PUT", f"{WORKSPACE}/codes/x/versions/1"),
    ("POST", f"{WORKSPACE}/codes/x/versions/1/startPendingUpload"),
    ("GET", f"/azure/history/v1.0{WORKSPACE.removeprefix('/azure')}/runs/x/details"),
    ("POST", f"/azure/history/v1.0{WORKSPACE.removeprefix('/azure')}/rundata"),
    ("GET", f"{WORKSPACE}/data"),
    ("GET", f"{WORKSPACE}/data/x/versions"),
    ("GET", f"{WORKSPACE}/schedules"),
    ("GET", f"{WORKSPACE}/batchEndpoints"),
    ("GET", f"{WORKSPACE}/batchEndpoints/x/deployments"),
    ("GET", "/azure/nowhere"),
    ("GET", "/azure"),
]


@pytest.fixture(scope="module")
def target(redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureTarget]:
    with azure_target(tmp_path_factory.mktemp("root"), redis_url) as made:
        yield made


def made_token(name: str = "default", *, secret: bytes = TOKEN.encode(), audience: str = ML, age_s: float = 0) -> str:
    return credentials.new_token(secret, name, audience, now=time.time() - age_s)[0]


def check_tokens(target: AzureTarget) -> None:
    """Nothing answers to who has no token, or one that was made for something else."""
    wrong = [
        "",
        TOKEN,
        made_token(audience="https://storage.azure.com"),
        made_token(secret=b"of-another-server-or-guessed"),
        made_token(age_s=2 * 3600),
        made_token(name="somebody"),
        made_token(name=""),
        target.token().rpartition(".")[0] + ".",
    ]
    for method, path in ROUTES:
        for token in wrong:
            status, body = target.ask(method, path, b"{}", {"Authorization": f"Bearer {token}"})
            assert status == 401, (method, path, token)
            assert json.loads(body)["error"]["code"] == "Unauthorized"
        assert target.ask(method, path, b"{}")[0] == 401
        status, _ = target.call(method, path, {} if method != "GET" else None)
        assert status not in (401, 403, 500), (method, path, status)


def test_nothing_answers_without_a_token_for_it(target: AzureTarget) -> None:
    check_tokens(target)


def test_a_token_of_this_face_opens_nothing_else(target: AzureTarget) -> None:
    headers = {"Authorization": f"Bearer {target.token()}"}

    for path in ("/v1/jobs", "/v1/nodes", "/v1/openapi.json"):
        assert target.ask("GET", path, headers=headers)[0] == 401


def test_tokens_are_handed_out_for_the_api_token_only(target: AzureTarget) -> None:
    path = f"/azure/identity?resource={ML}"

    for headers in ({}, {"X-IDENTITY-HEADER": "wrong"}, {"Authorization": f"Bearer {TOKEN}"}):
        assert target.ask("GET", path, headers=headers)[0] == 401
    assert (
        target.ask("GET", "/azure/identity?resource=https://graph.example", headers={"X-IDENTITY-HEADER": TOKEN})[0]
        == 400
    )


def test_who_is_removed_from_the_tokens_is_out_at_once(redis_url: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("alice first-token-of-alice\nbob second-token-of-bob\n")
    with azure_target(tmp_path / "root", redis_url, "--tokens-file", str(file)) as target:
        token = made_token("alice", secret=b"first-token-of-alice")
        assert target.call("GET", WORKSPACE, token=token)[0] == 200
        assert target.call("GET", WORKSPACE, token=made_token("alice", secret=b"second-token-of-bob"))[0] == 401

        file.write_text("bob second-token-of-bob\n")
        deadline = time.monotonic() + 20
        while target.call("GET", WORKSPACE, token=token)[0] != 401:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def check_signatures(target: AzureTarget) -> None:
    """A signature opens its container, for what it says, until it ends."""
    assert target.upload("LocalUpload/a.txt", b"content") == 201
    uploads, artifacts = target.signature(), target.signature("workspaceartifactstore")
    read = f"{UPLOADS}/LocalUpload/a.txt"
    old = credentials.new_signature(TOKEN.encode(), "default", "azureml-blobstore", "rw", now=time.time() - 9 * 3600)
    only_read = credentials.new_signature(TOKEN.encode(), "default", "azureml-blobstore", "r", now=time.time())
    longer = urlencode({**dict(parse_qsl(only_read)), "sp": "rw"})

    assert target.ask("GET", f"{read}?{uploads}") == (200, b"content")
    for wrong in ("", artifacts, old, uploads[:-4], "sig=x", "&".join(["x=1"] * 100)):
        assert target.ask("GET", f"{read}?{wrong}")[0] in (401, 403), wrong
    assert target.ask("GET", read, headers={"Authorization": f"Bearer {target.token()}"})[0] in (401, 403)
    assert target.upload("LocalUpload/a.txt", b"changed", signature=only_read) == 403
    assert target.upload("LocalUpload/a.txt", b"changed", signature=longer) == 403
    status, value = target.call("POST", f"{WORKSPACE}/codes/x/versions/1/startPendingUpload", {})
    code = value["blobReferenceForConsumption"]["credential"]["sasUri"].partition("?")[2]
    assert status == 200
    assert target.upload("LocalUpload/a.txt", b"changed", signature=code) == 403
    assert target.ask("GET", f"{read}?{uploads}") == (200, b"content")


def test_a_signature_opens_one_container_for_a_time(target: AzureTarget) -> None:
    check_signatures(target)


def test_the_files_of_a_version_never_change(target: AzureTarget) -> None:
    version = f"{WORKSPACE}/codes/fixed/versions/1"

    def reference() -> tuple[str, str]:
        status, value = target.call("POST", f"{version}/startPendingUpload", {})
        assert status == 200, value
        uri, _, query = value["blobReferenceForConsumption"]["credential"]["sasUri"].partition("?")
        return uri.partition("127.0.0.1")[2].partition("/")[2], query

    path, before = reference()
    code, headers = f"/{path}/src/main.py", {"x-ms-blob-type": "BlockBlob"}
    assert target.ask("PUT", f"{code}?{before}", b"first", headers)[0] == 201
    uri = f"https://h/{path}/src"
    assert target.call("PUT", version, {"properties": {"codeUri": uri}})[0] == 201

    _, after = reference()
    for what in ("", "&comp=block&blockid=YQ==", "&comp=metadata"):
        assert target.ask("PUT", f"{code}?{before}{what}", b"second", headers)[0] == 409
        assert target.ask("PUT", f"{code}?{after}{what}", b"second", headers)[0] == 403
    blocks = b"<BlockList></BlockList>"
    assert target.ask("PUT", f"{code}?{before}&comp=blocklist", blocks)[0] == 409
    assert target.ask("GET", f"{code}?{after}") == (200, b"first")
    assert target.call("PUT", version, {"properties": {"codeUri": uri, "tags": {"a": "b"}}})[0] == 201


def test_what_jobs_have_written_can_only_be_read(target: AzureTarget) -> None:
    assert target.upload("azureml-outputs/job/x", b"x") == 403
    path = f"/azure/blob/store/azureml/ExperimentRun/dcid.x/logs/a.txt?{target.signature('workspaceartifactstore')}"
    assert target.ask("PUT", path, b"x")[0] == 403


NAMES = [
    "../../../../etc/passwd", "..%2f..%2f..%2fazure%2fjobs", "%2e%2e/%2e%2e/code/x", "a/../../x", "%2Fetc%2Fpasswd",
    "a%00b", "a%5c..%5cb", "x" * 2000, "a/./b",
]  # fmt: skip


def check_names(target: AzureTarget) -> None:
    """No name of a blob leads out of its container."""
    before = sorted(path.name for path in target.root.iterdir())
    signature = target.signature()
    for name in NAMES:
        path = f"{UPLOADS}/{name}?{signature}"
        assert target.ask("GET", path)[0] in (400, 401, 403, 404, 413), name
        assert target.ask("PUT", path, b"planted")[0] in (400, 401, 403, 404, 413), name
    for container in ("..", "%2e%2e", "Azureml", "."):
        assert target.ask("GET", f"/azure/blob/store/{container}/x?{signature}")[0] in (400, 401, 403, 404)
    planted = [path for path in target.root.rglob("*") if path.is_file() and path.read_bytes() == b"planted"]
    assert planted == []
    assert set(before) | {"azure", "uploads"} >= {path.name for path in target.root.iterdir()}


def test_no_name_leaves_its_container(target: AzureTarget) -> None:
    check_names(target)


@pytest.mark.parametrize("name", ["..", "%2e%2e%2fx", "a%2f..%2fb", "x" * 300, "-x", "a%00"])
def test_no_name_of_an_asset_or_a_job_is_a_path(target: AzureTarget, name: str) -> None:
    version = {"properties": {"dataUri": "x", "dataType": "uri_file"}}
    for path in (f"data/{name}/versions/1", f"data/x/versions/{name}", f"jobs/{name}"):
        status, value = target.call("PUT", f"{WORKSPACE}/{path}", version)
        assert status in (400, 404, 405, 501), (path, value)
        assert target.call("GET", f"{WORKSPACE}/{path}")[0] in (400, 404, 405, 501), path


def test_bodies_have_limits(target: AzureTarget) -> None:
    blocks = b"<BlockList>" + b"<Latest>YQ==</Latest>" * 500_000 + b"</BlockList>"
    assert target.upload("big", blocks, "&comp=blocklist") == 413
    assert target.upload("big", blocks[: 2 << 20] + b"</BlockList>", "&comp=blocklist") == 400
    signature = target.signature()
    headers = {"Content-Length": str(10 << 30), "x-ms-blob-type": "BlockBlob"}
    assert target.ask("PUT", f"{UPLOADS}/big?{signature}", None, headers)[0] == 413
    assert target.ask("PUT", f"{UPLOADS}/big?{signature}", None, {"Content-Length": "-1"})[0] == 400
    assert target.call("PUT", f"{WORKSPACE}/jobs/x", {"properties": {"x": "y" * (3 << 20)}})[0] == 413


def test_uploads_have_a_quota(redis_url: str, tmp_path: Path) -> None:
    with azure_target(tmp_path, redis_url, "--max-upload-bytes", "1000") as target:
        assert target.upload("a", b"x" * 900) == 201
        assert target.upload("b", b"x" * 900) == 413
        assert target.upload("b", b"x" * 900, "&comp=block&blockid=YQ==") == 413


def test_no_body_is_longer_than_room_was_kept_for(redis_url: str, tmp_path: Path) -> None:
    with azure_target(tmp_path, redis_url, "--max-upload-bytes", "1000") as target:
        path = f"{UPLOADS}/long?{target.signature()}"
        for head in (b"Content-Length: 0\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: chunked"):
            sent = b"PUT %b HTTP/1.1\r\nHost: 127.0.0.1\r\n%b\r\n\r\n" % (path.encode(), head)
            answer = target.send(sent + b"400\r\n" + b"x" * 0x400 + b"\r\n0\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 400 "), answer
        assert [each for each in (tmp_path / "uploads").rglob("*") if each.is_file()] == []


def test_uploads_that_break_off_take_no_room(redis_url: str, tmp_path: Path) -> None:
    with azure_target(tmp_path, redis_url, "--max-upload-bytes", "1000") as target:
        path = f"{UPLOADS}/broken?{target.signature()}"
        for _ in range(3):
            target.send(
                b"PUT %b HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\nx" % path.encode(), ends=True
            )
        deadline = time.monotonic() + 20
        while target.upload("whole", b"x" * 900) != 201:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_a_name_that_leads_here_by_dns_gets_nothing(target: AzureTarget) -> None:
    headers = {"Host": "evil.example", "Authorization": f"Bearer {target.token()}"}

    assert target.ask("GET", WORKSPACE, headers=headers)[0] == 421
    assert target.ask("GET", "/azure/discovery", headers=headers)[0] == 421
    origin = {"Origin": "https://evil.example", "Authorization": f"Bearer {target.token()}"}
    assert target.ask("PUT", f"{WORKSPACE}/jobs/x", b"{}", origin)[0] == 403


def job(code: str, data: str) -> dict[str, object]:
    step = {
        "type": "parallel",
        "task": {"type": "run_function", "code": code, "entry_script": "main.py", "environment": "azureml:e:1"},
        "inputs": {"rows": {"job_input_type": "uri_folder", "uri": data}},
        "input_data": "${{inputs.rows}}",
    }
    return {"properties": {"jobType": "Pipeline", "settings": {"default_compute": "c"}, "jobs": {"step": step}}}


@pytest.mark.parametrize("path", ["{root}/azure", "{root}", "{root}/uploads", "{root}/jobs", "{root}/uploads/../azure"])
def test_a_job_reads_what_was_uploaded_and_nothing_beside_it(target: AzureTarget, path: str) -> None:
    assert target.upload("code/main.py", b"def run(mini_batch):\n    return mini_batch\n") == 201
    uploaded = "azureml://datastores/workspaceblobstore/paths/code"
    version = f"{WORKSPACE}/codes/good/versions/1"
    uri = f"https://127.0.0.1/azure/blob/store/azureml-blobstore/code?{target.server.port}"
    assert target.call("PUT", version, {"properties": {"codeUri": uri}})[0] in (201, 409)
    code = f"azureml:{version.removeprefix('/azure')}"

    place = path.format(root=target.root)
    for document in (job(place, uploaded), job(code, place)):
        status, value = target.call("PUT", f"{WORKSPACE}/jobs/reads", document)
        assert status == 400, value
        assert "ParallelRun's own files" in value["error"]["message"]


OUTSIDE = [
    "https://h/azure/blob/store/../x", "https://h/azure/blob/store/azureml/%2e%2e/x", "{root}/azure", "{root}",
    "{root}/..", "{link}", "relative", "", "azureml://datastores/workspaceblobstore/paths/../../azure",
]  # fmt: skip


def check_codes(target: AzureTarget, link: Path) -> None:
    """No version of code is of files that jobs may not read, nor is a component that names one."""
    link.symlink_to(target.root / "azure")
    for number, place in enumerate(OUTSIDE):
        version = f"{WORKSPACE}/codes/evil{number}/versions/1"
        uri = place.format(root=target.root, link=link)
        status, value = target.call("PUT", version, {"properties": {"codeUri": uri}})
        assert status == 400, (uri, value)
        assert value["error"]["details"], uri
        assert target.call("GET", version)[0] == 404


def test_a_code_that_names_a_place_outside_is_refused(target: AzureTarget, tmp_path: Path) -> None:
    check_codes(target, tmp_path / "link")


def test_no_component_copies_what_its_code_has_come_to_lead_to(target: AzureTarget, tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "main.py").write_text("")
    version = f"{WORKSPACE}/codes/moved/versions/1"
    assert target.call("PUT", version, {"properties": {"codeUri": str(folder)}})[0] == 201
    (folder / "main.py").unlink()
    folder.rmdir()
    folder.symlink_to(target.root / "azure")

    code = f"azureml:{version.removeprefix('/azure')}"
    component = {"name": "c", "type": "command", "command": "true", "code": code, "environment": "azureml:e:1"}
    sent = {"properties": {"componentSpec": component}}
    status, value = target.call("PUT", f"{WORKSPACE}/components/c/versions/1", sent)

    assert status == 400, value
    assert "ParallelRun's own files" in value["error"]["message"]


def test_components_in_components_have_only_so_many_steps(target: AzureTarget) -> None:
    command = {"name": "b0", "type": "command", "command": "true", "environment": "azureml:e:1"}
    version = f"{WORKSPACE}/components/b0/versions/1"
    sent = {"properties": {"componentSpec": command, "isAnonymous": True}}
    assert target.call("PUT", version, sent)[0] == 201
    for name in ("b1", "b2"):
        below = f"azureml:{version.removeprefix('/azure')}"
        jobs = {f"step{number}": {"component": below} for number in range(70)}
        version = f"{WORKSPACE}/components/{name}/versions/1"
        component = {"name": name, "type": "pipeline", "jobs": jobs}
        sent = {"properties": {"componentSpec": component, "isAnonymous": name == "b1"}}
        status, value = target.call("PUT", version, sent)
        assert status == (201 if name == "b1" else 400), value
    assert "more than 4,000 steps" in value["error"]["message"]


def test_no_answer_has_the_value_of_an_environment_variable(target: AzureTarget) -> None:
    assert target.upload("variables/main.py", b"def run(mini_batch):\n    return mini_batch\n") == 201
    version = f"{WORKSPACE}/codes/variables/versions/1"
    uri = "https://h/azure/blob/store/azureml-blobstore/variables"
    assert target.call("PUT", version, {"properties": {"codeUri": uri}})[0] == 201
    code = f"azureml:{version.removeprefix('/azure')}"
    document = json.loads(json.dumps(job(code, "azureml://datastores/workspaceblobstore/paths/variables")))
    document["properties"]["jobs"]["step"]["environment_variables"] = {"KEY": "a-secret-of-the-user"}

    status, made = target.call("PUT", f"{WORKSPACE}/jobs/variables", document)
    assert status == 201, made
    for path in (f"{WORKSPACE}/jobs/variables", f"{WORKSPACE}/jobs"):
        assert "a-secret-of-the-user" not in json.dumps(target.call("GET", path)[1])
    assert "a-secret-of-the-user" not in json.dumps(made)
    assert target.call("PUT", f"{WORKSPACE}/jobs/again", {"properties": made["properties"]})[0] == 400


def test_what_is_remembered_of_a_job_has_limits(target: AzureTarget) -> None:
    assert target.upload("labels/main.py", b"def run(mini_batch):\n    return mini_batch\n") == 201
    version = f"{WORKSPACE}/codes/labels/versions/1"
    uri = "https://h/azure/blob/store/azureml-blobstore/labels"
    assert target.call("PUT", version, {"properties": {"codeUri": uri}})[0] == 201
    code = f"azureml:{version.removeprefix('/azure')}"
    document = job(code, "azureml://datastores/workspaceblobstore/paths/labels")
    assert target.call("PUT", f"{WORKSPACE}/jobs/labels", document)[0] == 201
    run = f"/azure/history/v1.0{WORKSPACE.removeprefix('/azure')}/runs/labels"

    answers = [target.call("PATCH", run, {"tags": {f"tag{number}": "x" * 30_000}}) for number in range(5)]
    assert [status for status, _ in answers] == [200, 200, 400, 400, 400], answers
    assert "65,536" in answers[-1][1]["error"]["message"]
    deep: dict[str, object] = {}
    for _ in range(900):
        deep = {"x": deep}
    for method, path in (("PATCH", run), ("PUT", f"{WORKSPACE}/jobs/deep"), ("PUT", f"{WORKSPACE}/schedules/deep")):
        status, value = target.call(method, path, {"properties": deep, "tags": {}})
        assert status == 400, (path, value)
        assert "64 levels" in value["error"]["message"]
    assert target.call("GET", run)[0] == 200


def test_a_number_of_thousands_of_digits_is_refused(target: AzureTarget) -> None:
    for most in ("9" * 5000, "-1", "x"):
        assert target.call("GET", f"{WORKSPACE}/codes/x/versions?$top={most}")[0] == 400
    timeout = {"jobType": "Command", "command": "true", "limits": {"timeout": f"PT{'9' * 5000}S"}}
    assert target.call("PUT", f"{WORKSPACE}/jobs/long", {"properties": timeout})[0] == 400
