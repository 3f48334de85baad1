"""A job with its data in a datastore: the key is in a file on the nodes, and nowhere else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.storage.conftest import Bucket, Store
from tests.object_servers import BUCKET, ObjectServer, SeaweedFS
from tests.object_servers.s3 import KEY, SECRET

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]
Command = Callable[..., subprocess.CompletedProcess[str]]
SCRIPT = """
import os
from pathlib import Path

def run(mini_batch):
    assert not [value for value in os.environ.values() if "SECRET" in value]
    print("read", mini_batch)
    return [Path(path).read_text() for path in mini_batch]
"""


@pytest.fixture(scope="module")
def server(store: Store) -> ObjectServer:
    return store(SeaweedFS)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Runs a command as a user whose environment has nothing for stores."""
    secrets = tmp_path / "secrets"
    (secrets / "datastores").mkdir(parents=True)
    secrets.chmod(0o700)
    (secrets / "datastores" / "images").write_text(f"access_key_id: {KEY}\nsecret_access_key: {SECRET}\n")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PARALLELRUN_"))}
    own = {
        "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_STATE_HOME": str(tmp_path / "state"),
        "PARALLELRUN_SECRETS_DIR": "secrets", "AWS_EC2_METADATA_DISABLED": "true",
    }  # fmt: skip

    def run_command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "parallelrun", *words], cwd=tmp_path, env={**plain, **own}, check=False,
            capture_output=True, text=True, timeout=110,
        )  # fmt: skip

    return run_command


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "e.py").write_text(SCRIPT.replace("SECRET", SECRET))
    file = tmp_path / "job.yml"
    file.write_text(json.dumps({
        "entry_script": "e.py", "code": "src", "mini_batch_size": 2,
        "inputs": {"x": {"path": "azureml://datastores/images/paths/in/**/*.txt"}},
        "outputs": {"rows": {"path": "azureml://datastores/images/paths/out/rows.txt", "type": "uri_file"}},
        "append_row_to": "rows",
    }))  # fmt: skip
    return file


def define(command: Command, tmp_path: Path, server: ObjectServer, bucket: Bucket) -> subprocess.CompletedProcess[str]:
    document = {"name": "images", "type": "s3", "bucket": BUCKET, "prefix": bucket.prefix, "endpoint": server.url,
                "region": "us-east-1", "credentials": {"secret": "images"}}  # fmt: skip
    (tmp_path / "images.yml").write_text(json.dumps(document))
    return command("datastore", "create", "-f", "images.yml")


def test_the_key_of_a_datastore_is_nowhere_but_in_its_file(
    command: Command, job: Path, tmp_path: Path, server: ObjectServer, bucket: Bucket
) -> None:
    for number in range(5):
        bucket.put(f"in/{number}/a.txt", f"row {number}".encode())
    defined = define(command, tmp_path, server, bucket)
    assert (defined.returncode, defined.stdout) == (0, "images\n"), defined.stderr

    done = command("run", str(job), "--output", "out", "--keep")

    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(bucket.content("out/rows.txt").decode().splitlines()) == [f"row {number}" for number in range(5)]
    check_nowhere(tmp_path, defined.stdout + defined.stderr + done.stdout + done.stderr)


def check_nowhere(home: Path, said: str) -> None:
    """The working data has job folder, the services' logs, and all that Redis was told."""
    files = [path for path in home.rglob("*") if path.is_file() and home / "secrets" not in path.parents]
    names = {path.name for path in files}
    assert {"job.json", "images.json", "audit.log"} <= names
    assert any("redis" in str(path) for path in files)
    script = home / "src" / "e.py"
    having = [path for path in files if SECRET.encode() in path.read_bytes() and path.name != script.name]
    assert having == []
    assert SECRET not in said


def test_a_job_that_names_an_unknown_datastore_is_refused_with_what_to_do(
    command: Command, job: Path, tmp_path: Path, server: ObjectServer, bucket: Bucket
) -> None:
    refused = command("run", str(job), "--output", "out")
    assert refused.returncode == 2, refused.stderr
    assert "there is no datastore 'images'" in refused.stderr
    assert "parallelrun datastore create -f FILE" in refused.stderr
    assert not (tmp_path / "out").exists()

    define(command, tmp_path, server, bucket)
    other = command("run", str(job), "--output", "out", "--set", "inputs.x.path=azureml://datastores/image/paths/x")
    assert other.returncode == 2
    assert "did you mean 'images'" in other.stderr


def test_what_is_wrong_with_the_secret_is_said_before_the_run(
    command: Command, job: Path, tmp_path: Path, server: ObjectServer, bucket: Bucket
) -> None:
    define(command, tmp_path, server, bucket)
    (tmp_path / "secrets" / "datastores" / "images").write_text("something: else\n")
    why = "its secret 'images' can't be used here: it must have access_key_id"
    refused = command("run", str(job), "--output", "out")  # which asks for the output before it starts anything
    assert refused.returncode == 2
    assert why in refused.stderr
    failed = command("run", str(job), "--output", "out", "--set", "append_row_to=''", "--set", "outputs={}")
    assert failed.returncode == 2, failed.stdout + failed.stderr
    assert why in failed.stderr


def test_datastores_of_this_machine_are_listed_shown_and_deleted(
    command: Command, tmp_path: Path, server: ObjectServer, bucket: Bucket
) -> None:
    assert command("datastore", "list", "-o", "json").stdout == "[]\n"
    define(command, tmp_path, server, bucket)
    assert command("datastore", "list", "-o", "name").stdout == "images\n"
    shown = command("datastore", "show", "images")
    assert f"location:    {server.url}/{BUCKET}/{bucket.prefix}" in shown.stdout
    assert "datastores/images in the folder of secrets" in shown.stdout
    assert command("datastore", "delete", "images").returncode == 0
    gone = command("datastore", "show", "images")
    assert gone.returncode == 1
    assert "There is no datastore 'images'" in gone.stderr
    (tmp_path / "images.yml").write_text(f"{{name: x, type: azure_blob, credentials: {{account_key: {SECRET}}}}}")
    refused = command("datastore", "create", "-f", "images.yml")
    assert refused.returncode == 2
    assert "PARALLELRUN_SECRETS_DIR" in refused.stderr
    assert SECRET not in refused.stderr
