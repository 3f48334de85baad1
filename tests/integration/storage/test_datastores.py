"""What a datastore stands for is listed, read and written with its own credentials, whatever the environment has."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import deltalake
import pytest

from parallelrun.doctor import stores
from parallelrun_core.datastores import registry as datastore_registry
from parallelrun_core.datastores.document import datastore_catalog, read_definition
from parallelrun_core.errors import Conflict
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.storage.objects import ObjectStorage, clients
from parallelrun_core.storage.objects.environment import NoCredentials
from parallelrun_core.storage.objects.trouble import AccessDenied
from parallelrun_core.storage.objects.uploads import s3
from parallelrun_core.wire.finding import Place
from tests.integration.storage.conftest import Bucket, Store
from tests.integration.storage.tables import Make, delta, seen
from tests.object_servers import BUCKET, Azurite, GoogleStub, Moto, ObjectServer, SeaweedFS
from tests.object_servers.azure import ACCOUNT, ACCOUNT_KEY
from tests.object_servers.s3 import KEY, SECRET

STORAGE = ObjectStorage()
URL = "azureml://datastores/images/paths"
pytestmark = pytest.mark.integration


class Node:
    """A node whose environment has nothing for stores, with a folder of secrets."""

    def __init__(self, home: Path, server: ObjectServer) -> None:
        self.catalog = datastore_catalog(home)
        self._server = server
        self.secrets = home / "secrets"
        (self.secrets / "datastores").mkdir(parents=True)
        self.secrets.chmod(0o700)
        datastore_registry.configure(home, ProcessSecrets(str(self.secrets)))

    def put_secret(self, key: str = KEY, secret: str = SECRET) -> None:
        text = f"access_key_id: {key}\nsecret_access_key: {secret}\n"
        (self.secrets / "datastores" / "key").write_text(text)

    def define(self, **fields: object) -> None:
        given = {"type": "s3", "bucket": BUCKET, "endpoint": self._server.url, "credentials": {"secret": "key"}}
        self.catalog.define(read_definition({**given, **fields}, name="images"))


@pytest.fixture(scope="module", params=[Moto, SeaweedFS], ids=lambda kind: kind.__name__)
def server(request: pytest.FixtureRequest, store: Store) -> ObjectServer:
    return store(request.param)


@pytest.fixture
def node(tmp_path: Path, server: ObjectServer, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Node]:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(datastore_registry, "_FRESH_S", 0)
    node = Node(tmp_path, server)
    node.put_secret()
    yield node
    datastore_registry._SOURCES.clear()
    clients.forget()
    s3.forget()


def listed(url: str) -> list[str]:
    return sorted(os.fsdecode(folder + b"/" + name) for folder, names in STORAGE.files(url) for name in names)


def written(url: str, content: bytes, owner: str = "job_a") -> None:
    with STORAGE.create(url, owner) as new:
        new.write(memoryview(content))
        new.sync()
        new.publish(())


def test_paths_start_below_the_prefix_with_no_other_settings(node: Node, bucket: Bucket) -> None:
    node.define(prefix=bucket.prefix)
    bucket.put("in/a.txt", b"one")
    bucket.put("in/b/c.csv", b"two")

    assert listed(URL) == [f"{URL}/in/a.txt", f"{URL}/in/b/c.csv"]
    assert listed(f"{URL}/in/**/*.csv") == [f"{URL}/in/b/c.csv"]
    assert listed(f"{URL}/in/a.txt") == [f"{URL}/in/a.txt"]
    assert STORAGE.open(f"{URL}/in/a.txt").read() == b"one"
    assert STORAGE.version(f"{URL}/in/b/c.csv").size_bytes == 3


def test_an_output_appears_below_the_prefix_once_and_replaces_nothing_of_others(node: Node, bucket: Bucket) -> None:
    node.define(prefix=bucket.prefix)
    written(f"{URL}/out.txt", b"rows")
    written(f"{URL}/out.txt", b"rows again")
    assert bucket.content("out.txt") == b"rows again"
    with pytest.raises(Conflict, match="azureml://datastores/images/paths/out"):
        written(f"{URL}/out.txt", b"of another", owner="job_b")
    begun = STORAGE.create(f"{URL}/begun.txt", "job_a")
    begun.write(memoryview(b"x"))
    unfinished = STORAGE.unfinished(f"{URL}/begun.txt", "job_a")
    assert len(unfinished) == 1
    STORAGE.discard(unfinished)
    assert STORAGE.unfinished(f"{URL}/begun.txt", "job_a") == []
    begun.__exit__()


def test_credentials_of_a_datastore_go_before_those_of_the_environment(
    node: Node, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "of-somebody-else")
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "yes")
    node.define(prefix=bucket.prefix)
    bucket.put("a.txt")
    assert listed(URL) == [f"{URL}/a.txt"]
    written(f"{URL}/b.txt", b"rows")
    assert bucket.content("b.txt") == b"rows"


@pytest.mark.parametrize("server", [SeaweedFS], indirect=True)  # moto lets in everybody
@pytest.mark.parametrize("version", [{"version_as_of": 1}, {"timestamp_as_of": "2999-01-01"}], ids=str)
def test_a_delta_table_is_read_with_the_credentials_of_its_datastore(
    version: dict[str, object], node: Node, bucket: Bucket, job: Make, tmp_path: Path
) -> None:
    delta(tmp_path / "t", ["day"])
    deltalake.DeltaTable(str(tmp_path / "t")).create_checkpoint()
    for path in (tmp_path / "t").rglob("*"):
        if path.is_file():
            bucket.put(str(path.relative_to(tmp_path)), path.read_bytes())
    node.define(prefix=bucket.prefix)

    there, local = (job(path, {"read_delta_lake": version}).run() for path in (f"{URL}/t", str(tmp_path / "t")))

    assert seen(there) == seen(local)
    assert len(there) > 0


@pytest.mark.parametrize("server", [SeaweedFS], indirect=True)  # moto lets in everybody
def test_a_secret_that_was_changed_on_the_node_is_used_by_the_next_request(node: Node, bucket: Bucket) -> None:
    node.define(prefix=bucket.prefix)
    bucket.put("a.txt", b"one")
    node.put_secret(secret="an-old-one-that-is-no-longer-valid")
    with pytest.raises(AccessDenied) as refused:
        STORAGE.open(f"{URL}/a.txt")
    assert "an-old-one" not in f"{refused.value!r}{refused.value.__cause__!r}"
    node.put_secret()
    assert STORAGE.open(f"{URL}/a.txt").read() == b"one"
    node.define(prefix=f"{bucket.prefix}/deeper")
    assert listed(URL) == []


@pytest.mark.parametrize("server", [Moto], indirect=True)
def test_anonymous_access_needs_no_credentials_and_sends_none(
    node: Node, bucket: Bucket, server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.define(prefix=bucket.prefix, anonymous=True, credentials=None)
    bucket.put("a.txt")
    assert listed(URL) == [f"{URL}/a.txt"]
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "yes")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    node.define(prefix=bucket.prefix, credentials=None)
    written(f"{URL}/b.txt", b"of a datastore")
    written(bucket.url("c.txt"), b"of a bucket")
    assert listed(bucket.url()) == [bucket.url(f"{name}.txt") for name in "abc"]


@pytest.mark.parametrize("server", [Moto], indirect=True)
def test_without_any_credentials_what_to_set_is_said(node: Node, bucket: Bucket, tmp_path: Path) -> None:
    node.define(prefix=bucket.prefix, credentials=None)
    with pytest.raises(NoCredentials, match=r"set AWS_ACCESS_KEY_ID .* profile .* role.* anonymous"):
        listed(URL)
    with pytest.raises(NoCredentials, match="set AWS_ACCESS_KEY_ID"):
        listed(bucket.url())


@pytest.mark.parametrize("server", [Moto], indirect=True)
def test_a_profile_of_the_users_is_enough(
    node: Node, bucket: Bucket, tmp_path: Path, server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".aws").mkdir()
    profile = f"[profile work]\nregion = eu-west-1\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n"
    (tmp_path / ".aws" / "config").write_text(profile)
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    clients.forget()
    s3.forget()
    bucket.put("a.txt")
    assert listed(bucket.url()) == [bucket.url("a.txt")]
    node.define(prefix=bucket.prefix, credentials=None)
    assert listed(URL) == [f"{URL}/a.txt"]
    written(bucket.url("b.txt"), b"rows")
    assert bucket.content("b.txt") == b"rows"


@pytest.mark.parametrize("server", [Moto], indirect=True)
def test_the_doctor_tries_what_a_job_will_do_and_leaves_nothing(
    server: ObjectServer, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "e.py").write_text("def run(mini_batch):\n    return mini_batch\n")
    outputs = {"rows": {"path": bucket.url("out/rows.txt"), "type": "uri_file"}}
    job = {"entry_script": "e.py", "code": ".", "inputs": {"x": bucket.url("in")}, "outputs": outputs}
    (tmp_path / "job.yml").write_text(json.dumps(job | {"append_row_to": "rows"}))
    place = Place(root=tmp_path, job_file=tmp_path / "job.yml")

    def said() -> list[tuple[str, str]]:
        return [(each.level, each.what) for check in stores.CHECKS for each in check(place)]

    assert said()[0] == ("bad", f"input x: {bucket.url('in')} can be asked for, and has no objects")
    bucket.put("in/a.txt")
    assert said() == [
        ("ok", f"input x: {bucket.url('in')} can be listed and read"),
        ("ok", f"outputs.rows: {bucket.url('out')} can be written"),
        ("ok", "outputs.rows: what others have written there is not replaced"),
    ]
    assert len(bucket.keys()) == 1
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setattr(clients, "_RETRY_FOR_S", 0)
    clients.forget()
    s3.forget()
    assert [level for level, _ in said()] == ["bad", "bad"]


@pytest.mark.parametrize("server", [Azurite, GoogleStub], indirect=True)
@pytest.mark.parametrize("kind", ["azure_blob", "azure_data_lake_gen2", "gcs"])
def test_datastores_of_azure_and_google_are_as_those_of_s3(
    server: ObjectServer, bucket: Bucket, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (kind == "gcs") != isinstance(server, GoogleStub):
        pytest.skip("of another server")
    for name in server.environment:
        monkeypatch.delenv(name)
    secrets = tmp_path / "secrets"
    (secrets / "datastores").mkdir(parents=True)
    secrets.chmod(0o700)
    (secrets / "datastores" / "key").write_text(f"account_key: {ACCOUNT_KEY}\n")
    datastore_registry.configure(tmp_path, ProcessSecrets(str(secrets)))
    given: dict[str, object] = {"type": kind, "prefix": bucket.prefix}
    if kind == "gcs":
        given |= {"bucket": BUCKET, "endpoint": server.url, "anonymous": True}
    else:
        container = "container_name" if kind == "azure_blob" else "filesystem"
        account = {"account_name": ACCOUNT, "endpoint": f"{server.url}/{ACCOUNT}", "credentials": {"secret": "key"}}
        given |= {container: BUCKET, **account}
    datastore_catalog(tmp_path).define(read_definition(given, name="images"))
    clients.forget()
    bucket.put("in/a.txt", b"one")
    try:
        assert listed(URL) == [f"{URL}/in/a.txt"]
        assert STORAGE.open(f"{URL}/in/a.txt").read() == b"one"
        written(f"{URL}/out.txt", b"rows")
        assert bucket.content("out.txt") == b"rows"
        with pytest.raises(Conflict):
            written(f"{URL}/out.txt", b"of another", owner="job_b")
    finally:
        datastore_registry._SOURCES.clear()
