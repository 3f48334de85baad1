"""Each kind that docs/architecture.md says needs one new module and nothing else: a toy is dropped in, and is used.

A drill copies our packages, by links, drops modules of `plug_ins` into the copy, and starts our programs from it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from parallelrun_core.errors import InvalidInput
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_core.spec import JobSpec
from parallelrun_master.outbox.delivery import SecretsOfServices
from tests.integration.api.conftest import ENTRY_SCRIPT
from tests.integration.api.server import ApiServer
from tests.security.azure_target import TOKEN, WORKSPACE, AzureTarget

if TYPE_CHECKING:
    from redis import Redis

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
PLUG_INS = Path(__file__).parent / "plug_ins"
FOLDERS = {
    "parallelrun": "client",
    "parallelrun_agent": "services/agent",
    "parallelrun_api": "services/api",
    "parallelrun_concatenator": "services/concatenator",
    "parallelrun_core": "shared",
    "parallelrun_master": "services/master",
    "parallelrun_provisioner": "services/provisioner",
    "parallelrun_worker": "services/agent",
}
_SECRETS = "where the values of secrets come from (a folder of files; a vault)"
KINDS = {
    "a table format": [
        "parallelrun_core/mltable/formats/moon.py",
        "parallelrun_master/planning/formats/moon.py",
        "parallelrun_worker/tables/formats/moon.py",
    ],
    "a format of the output": [
        "parallelrun_core/wire/row_formats/moon.py",
        "parallelrun_worker/rows/formats/moon.py",
        "parallelrun_concatenator/formats/moon.py",
    ],
    "a kind of compute": ["parallelrun_core/computes/kinds/moon.py", "parallelrun_provisioner/engines/moon.py"],
    "a type of asset": ["parallelrun_core/assets/kinds/poem.py"],
    _SECRETS: ["parallelrun_core/service/secret_sources/moon.py"],
    "what the adviser finds": ["parallelrun_core/adviser/findings/moon.py"],
    "a kind of trigger of schedules": [
        "parallelrun_core/schedules/triggers/spring_tide.py",
        "parallelrun_core/schedules/triggers/landing.py",
    ],
    "a destination of ends of jobs, such as e-mail": ["parallelrun_master/destinations/bell.py"],
    "what `parallelrun doctor` checks": ["parallelrun/doctor/moon.py", "parallelrun_core/checks/orbit.py"],
}
"""The modules that are dropped in for each row of "Where a change begins" that says "nothing else"."""
_SCHEMES = "parallelrun_core/storage/schemes.py"
_MOON_SCHEMES = """SCHEMES: Final = {
    "moon": _S3, "mare": _S3._replace(kind="mare", canonical="mare", endpoints=("MARE_ENDPOINT",)),
    "sea": _S3._replace(kind="mare", canonical="sea"),
    "dust": _S3._replace(kind="dust", canonical="dust", protocol="gcs", lists_in_order=False),
    "rock": _AZ._replace(kind="rock", canonical="rock"),"""
_DATASTORES = "parallelrun_core/datastores/definition.py"
_MOON_DATASTORE = """
class MoonDatastore(S3Datastore):
    type: Literal["moon"]
    crater: str

"""
_RETRIES = "parallelrun_core/spec/retry_policy.py"
_PAUSES = "PAUSES_S: Final[tuple[float, ...]] = "
EDITS = {
    "retries: whether a mini-batch that failed is tried again, and after which pause (backoff)": {
        _RETRIES: {f"{_PAUSES}(0.0,)": f"{_PAUSES}(0.5, 1.0)"}
    },
    "a kind of object store, or a scheme of URLs": {_SCHEMES: {"SCHEMES: Final = {": _MOON_SCHEMES}},
    "a kind of datastore": {
        _DATASTORES: {
            "AzureDatastore = ": f"{_MOON_DATASTORE}\nAzureDatastore = ",
            "Datastore = S3Datastore": "Datastore = MoonDatastore | S3Datastore",
        }
    },
}
"""The lines that are changed for rows whose first file is all that a kind like one of ours takes."""
AZURE_JOB = {
    "actionType": "CreateJob",
    "jobDefinition": {
        "jobType": "Pipeline",
        "jobs": {"step": {"type": "command", "command": "true", "environment": "azureml:e@latest"}},
    },
}


class Copy:
    """Our packages with plug-ins dropped in, below a folder."""

    def __init__(self, folder: Path, plug_ins: list[str]) -> None:
        for package, top in FOLDERS.items():
            shutil.copytree(
                ROOT / top / package, folder / package, copy_function=os.symlink,
                ignore=shutil.ignore_patterns("__pycache__"),
            )  # fmt: skip
        for name in plug_ins:
            assert not (folder / name).exists()
            shutil.copy(PLUG_INS / name, folder / name)
        home = {"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "home")}
        self.environment = {**os.environ, **home, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}

    def edit(self, folder: Path, name: str, lines: dict[str, str]) -> None:
        """Replace what begins lines of a module, which stays as it is in the checkout."""
        text = (ROOT / FOLDERS[name.partition("/")[0]] / name).read_text(encoding="utf-8")
        for before, after in lines.items():
            assert text.count(f"\n{before}") == 1
            text = text.replace(f"\n{before}", f"\n{after}")
        (folder / name).unlink()
        (folder / name).write_text(text, encoding="utf-8")

    def run(self, *line: str, **environment: str) -> str:
        """What a Python program writes, which must end well."""
        done = subprocess.run(
            [sys.executable, *line], env={**self.environment, **environment}, cwd=ROOT, capture_output=True, text=True,
            timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def command(self, *line: str, **environment: str) -> str:
        """What `parallelrun …` writes."""
        return self.run("-m", "parallelrun", *line, **environment)


@pytest.fixture
def dropped(tmp_path: Path) -> Callable[[str], Copy]:
    return lambda kind: Copy(tmp_path / "packages", KINDS[kind])


@pytest.fixture
def edited(tmp_path: Path) -> Callable[[str], Copy]:
    def copy_with(kind: str) -> Copy:
        copy = Copy(tmp_path / "packages", [])
        for name, lines in EDITS[kind].items():
            copy.edit(tmp_path / "packages", name, lines)
        return copy

    return copy_with


def rows() -> dict[str, str]:
    """The rows of the table, each with all that it names."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("## Where a change begins")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| (.*?) \| (.*) \|$", table, re.MULTILINE))


def test_each_kind_that_needs_nothing_else_has_a_drill_and_its_place_is_named() -> None:
    table = rows()
    assert {kind for kind, rest in table.items() if "nothing else" in rest} == KINDS.keys()
    for kind, edits in EDITS.items():
        for name in edits:
            assert table[kind].startswith(f"`{name.removeprefix('parallelrun_')}`"), kind
    for kind, plug_ins in KINDS.items():
        for name in plug_ins:
            folder = os.path.dirname(name).removeprefix("parallelrun_")
            assert f"`{folder}/`" in table[kind] or f"`client/{folder}/`" in table[kind], (kind, folder)


def test_a_table_format_is_read_cut_and_shown(dropped: Callable[[str], Copy], tmp_path: Path) -> None:
    (tmp_path / "rows.moon").write_text('{"id": 1}\n{"id": 2}\n')
    shown = json.loads(dropped("a table format").command("data", "preview", str(tmp_path / "rows.moon"), "-o", "json"))
    assert shown[0]["read"] == {"read_moon": {}}
    assert [row["id"] for row in shown[0]["rows"]] == ["1", "2"]


def test_a_format_of_the_output_is_written_put_together_and_told(
    dropped: Callable[[str], Copy], tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("def run(mini_batch):\n    return [len(mini_batch)]\n")
    (tmp_path / "data").mkdir()
    for number in range(3):
        (tmp_path / "data" / f"{number}.txt").touch()
    job = {
        "code": "src", "entry_script": "main.py", "inputs": {"data": {"path": "data"}}, "mini_batch_size": 1,
        "append_row_file_name": "rows.moon",
    }  # fmt: skip
    (tmp_path / "job.yml").write_text(json.dumps(job))
    copy, out = dropped("a format of the output"), tmp_path / "out"
    copy.command("run", str(tmp_path / "job.yml"), "--output", str(out))
    assert (out / "rows.moon").read_text() == "3:1o1o1o"
    assert "The output has craters." in (out / "logs" / "job_result.txt").read_text()


def test_a_scheme_of_urls_is_read_suggested_and_allowed(edited: Callable[[str], Copy]) -> None:
    program = """
from parallelrun_core.storage.objects.address import address_of
from parallelrun_core.storage.objects.allowed import is_below
from parallelrun_core.storage.objects.clients import client_of
from parallelrun_core.storage.objects.parallel_listing import folders_at_once
from parallelrun_core.storage.objects.uploads.s3 import is_s3, place_of
from parallelrun_core.storage.path_rule import EVERYWHERE
from parallelrun_core.storage.stores import storage_of
from parallelrun_core.storage.supported import supported_path

url = supported_path("moon://tycho/dust.csv")
assert storage_of(url) is storage_of("s3://b/k")
assert is_below(url, EVERYWHERE)
assert is_below("sea://tycho/dust.csv", ["mare://"]), "of the same kind"
print(type(client_of(address_of(url).store)).__name__)
try:
    supported_path("mooon://tycho/dust.csv")
except ValueError as error:
    print(str(error).rpartition("; ")[2])
for url in ("mare://tycho/dust.csv", "dust://tycho/dust.csv", "rock://tycho/dust.csv"):
    address = address_of(supported_path(url))
    assert storage_of(url) is storage_of("s3://b/k")
    client = client_of(address.store)
    print(address.store, type(client).__name__, is_s3(address), folders_at_once(address.store) > 1)
    if is_s3(address):
        print(client.config["endpoint"], place_of(address).client.meta.endpoint_url)
"""
    environment = {
        "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "MARE_ENDPOINT": "http://127.0.0.1:9",
        "PARALLELRUN_LIST_AT_ONCE": "4", "AZURE_STORAGE_ACCOUNT": "acc", "AZURE_STORAGE_KEY": "a2V5",
    }  # fmt: skip
    written = edited("a kind of object store, or a scheme of URLs").run("-c", program, **environment)
    assert written.splitlines() == [
        "S3Store", "did you mean 'moon://tycho/dust.csv'?", "mare://tycho S3Store True True",
        "http://127.0.0.1:9 http://127.0.0.1:9", "dust://tycho GCSStore False False",
        "rock://tycho AzureStore False False",
    ]  # fmt: skip


def test_a_retry_policy_with_pauses_is_kept_by_all_services(edited: Callable[[str], Copy], tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    begun, home = tmp_path / "begun", tmp_path / "job"
    (code / "main.py").write_text(
        "import time\n"
        "def run(mini_batch):\n"
        f"    with open({str(begun)!r}, 'a+') as begun:\n"
        "        print(time.time(), file=begun, flush=True)\n"
        "        begun.seek(0)\n"
        "        assert len(list(begun)) == 3\n"
        "    return mini_batch\n"
    )
    (tmp_path / "one.txt").touch()
    job = {
        "code": str(code), "entry_script": "main.py", "inputs": {"data": str(tmp_path / "one.txt")},
        "mini_batch_size": 1, "run_max_try": 3,
    }  # fmt: skip
    (tmp_path / "job.json").write_text(json.dumps(job))
    copy = edited("retries: whether a mini-batch that failed is tried again, and after which pause (backoff)")
    copy.command("run", str(tmp_path / "job.json"), "--output", str(home))
    first, second, third = map(float, begun.read_text().split())
    assert second - first >= 0.5
    assert third - second >= 1


def test_a_kind_of_datastore_is_defined_shown_and_has_a_client(
    edited: Callable[[str], Copy], tmp_path: Path, redis: Redis, redis_url: str
) -> None:
    copy = edited("a kind of datastore")
    file = tmp_path / "datastore.yml"
    file.write_text("name: far\ntype: moon\ncrater: Tycho\nbucket: dust\nanonymous: true\n")
    with ApiServer(tmp_path / "root", redis_url, env=copy.environment) as server, server.client() as api:
        url = {"PARALLELRUN_URL": f"http://127.0.0.1:{server.port}"}
        copy.command("datastore", "create", "-f", str(file), **url)
        assert "moon" in copy.command("datastore", "list", **url)
        assert api.get("/v1/datastores/far").json()["definition"]["crater"] == "Tycho"
    program = (
        "from pathlib import Path; from parallelrun_core.datastores import registry;"
        "from parallelrun_core.storage.objects.clients import client_of;"
        f"registry.configure(Path({str(tmp_path / 'root')!r}));"
        "print(type(client_of('azureml://datastores/far/paths')).__name__)"
    )
    assert copy.run("-c", program).strip() == "S3Store"


def test_a_kind_of_compute_is_defined_shown_and_served(
    dropped: Callable[[str], Copy], tmp_path: Path, redis: Redis, redis_url: str
) -> None:
    copy = dropped("a kind of compute")
    file = tmp_path / "compute.yml"
    file.write_text("name: far\ntype: moon\ncrater: Tycho\nmax_instances: 2\n")
    with ApiServer(tmp_path / "root", redis_url, env=copy.environment) as server, server.client() as api:
        url = {"PARALLELRUN_URL": f"http://127.0.0.1:{server.port}"}
        copy.command("compute", "create", "-f", str(file), **url)
        assert "moon" in copy.command("compute", "list", **url)
        assert api.get("/v1/computes/far").json()["definition"]["crater"] == "Tycho"
        assert api.put("/v1/computes/near", json={"type": "moon"}).json()["errors"][0]["pointer"] == "/crater"
    kinds = "from parallelrun_provisioner.settings import *; print(ProvisionerSettings(kinds='moon').serves('moon'))"
    assert copy.run("-c", kinds).strip() == "True"
    engine = "from parallelrun_provisioner.engines.moon import MoonEngine; print(MoonEngine.__doc__)"
    assert copy.run("-c", engine).strip() == "Launches nothing."


def test_a_type_of_asset_is_made_shown_and_named(
    dropped: Callable[[str], Copy], tmp_path: Path, redis: Redis, redis_url: str
) -> None:
    copy = dropped("a type of asset")
    (tmp_path / "ode.txt").write_text("O wild West Wind\n")
    file = tmp_path / "poem.yml"
    file.write_text("name: ode\nversion: 3\npath: ode.txt\nmeter: iambic\n")
    with ApiServer(tmp_path / "root", redis_url, env=copy.environment) as server, server.client() as api:
        url = {"PARALLELRUN_URL": f"http://127.0.0.1:{server.port}"}
        copy.command("poem", "create", "-f", str(file), **url)
        assert "ode" in copy.command("poem", "list", **url)
        by_place = api.post("/v1/assets/poem/elegy/versions", json={"path": str(tmp_path / "ode.txt")})
        assert by_place.status_code == 201, by_place.text
        content: dict[str, Any] = api.get("/v1/assets/poem/ode/versions/3").json()["content"]
        assert api.get("/v1/assets/novel/ode/versions/3").status_code == 422
    assert content["meter"] == "iambic"
    assert Path(content["path"]).read_text() == "O wild West Wind\n"
    long_form = "azureml://registries/r/poems/ode/versions/3"
    program = f"from parallelrun_core.names.assets import reference_of; print(reference_of({long_form!r}).type)"
    assert copy.run("-c", program).strip() == "poem"


def test_a_kind_of_trigger_is_defined_due_told_in_words_and_known_to_azure_clients(
    dropped: Callable[[str], Copy], tmp_path: Path, redis: Redis, redis_url: str
) -> None:
    copy = dropped("a kind of trigger of schedules")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text(ENTRY_SCRIPT)
    (tmp_path / "one.txt").touch()
    trigger = {"type": "spring_tide", "harbor": "Husum", "start_time": "2030-01-01T00:00:00"}
    job = {"code": "src", "entry_script": "main.py", "inputs": {"data": str(tmp_path / "one.txt")}}
    file = tmp_path / "schedule.json"
    file.write_text(json.dumps({"name": "wet", "trigger": trigger, "create_job": job}))
    words = "each spring tide at Husum (UTC), from 2030-01-01T00:00:00"
    with ApiServer(tmp_path / "root", redis_url, "--token", TOKEN, env=copy.environment) as server:
        url = {"PARALLELRUN_URL": f"http://127.0.0.1:{server.port}", "PARALLELRUN_TOKEN": TOKEN}
        copy.command("schedule", "create", "-f", str(file), **url)
        assert words in copy.command("schedule", "list", **url)
        elsewhere = {**url, "PYTHONPATH": os.environ.get("PYTHONPATH", "")}  # the command line of who has no such kind
        assert words in copy.command("schedule", "show", "wet", **elsewhere)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        schedule: dict[str, Any] = httpx.get(f"{url['PARALLELRUN_URL']}/v1/schedules/wet", headers=headers).json()
        contract = httpx.get(f"{url['PARALLELRUN_URL']}/v1/openapi.json", headers=headers).text
        azure = AzureTarget(server)
        shown = azure.call("GET", f"{WORKSPACE}/schedules/wet")[1]["properties"]
        status, answer = azure.call("PUT", f"{WORKSPACE}/schedules/wet", {"properties": {**shown, "action": AZURE_JOB}})
        assert status in {200, 201}, answer
        again: dict[str, Any] = httpx.get(f"{url['PARALLELRUN_URL']}/v1/schedules/wet", headers=headers).json()
    assert schedule["trigger"] == again["trigger"] == trigger
    assert schedule["due"] == again["due"] == words
    assert schedule["next"][:2] == ["2030-01-01T00:00:00Z", "2030-01-15T18:00:00Z"]
    assert shown["trigger"] == {"triggerType": "SpringTide", "harbor": "Husum", "startTime": trigger["start_time"]}
    assert "`type: spring_tide`" in contract


def test_a_trigger_that_waits_for_events_makes_a_job_for_each(
    dropped: Callable[[str], Copy], tmp_path: Path, redis: Redis, redis_url: str
) -> None:
    (tmp_path / "landed").mkdir()
    program = f"""
import os
from pathlib import Path
from parallelrun_core.layout import job_ids
from parallelrun_core.schedules.records import utc_time
from parallelrun_core.schedules.trigger import as_document, read_trigger
from parallelrun_core.store.connection import connect
from parallelrun_master.schedules.firing import Firing
from tests.integration.test_schedules import START, Clock, fires, schedule

root, landed, clock = Path({str(tmp_path / "root")!r}), Path({str(tmp_path / "landed")!r}), Clock()
trigger = read_trigger({{"type": "landing", "folder": str(landed)}}, created=utc_time(START))
schedule(root, trigger=as_document(trigger))
master = Firing(root, connect({redis_url!r}), clock=clock)
for name in ("", "eagle", "", "luna"):
    clock.now += 5
    if name:
        (landed / name).touch()
        os.utime(landed / name, (clock.now - 1, clock.now - 1))
    master.check()
    assert len(job_ids(root)) == len([*landed.iterdir()])
print(*(due for due, *_ in fires(root)))
"""
    logged = dropped("a kind of trigger of schedules").run("-c", program).splitlines()
    assert logged[-1] == "2026-11-23T05:00:19Z 2026-11-23T05:00:09Z"


def test_another_source_of_secrets_is_made_once_in_each_process_and_closed_there(
    dropped: Callable[[str], Copy], tmp_path: Path
) -> None:
    """A source with a token that runs out, and values that it keeps."""
    program = f"""
import io
import os
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from parallelrun.embedded.services import ClusterLayout, cluster_services
from parallelrun_core.computes.kinds.slurm import SlurmCompute
from parallelrun_core.service.process_secrets import ProcessSecrets
from parallelrun_master.outbox.delivery import DeliveryOrder, carry_out
from parallelrun_master.settings import MasterSettings
from tests.unit.agent.test_plans import template_of

settings = MasterSettings.from_command_line(["--root", {str(tmp_path / "root")!r}])
with closing(ProcessSecrets(settings.secrets_dir)) as secrets:
    assert [secrets.read(name) for name in "aab"] == [b"a of moon://tycho"] * 2 + [b"b of moon://tycho"]
    if not (pid := os.fork()):
        secrets.read("a")
        secrets.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert secrets.read("b"), "of the token that this process has"
sys.stdin = SimpleNamespace(buffer=io.BytesIO(DeliveryOrder.of(settings, [], 1.0)))
carry_out(DeliveryOrder, lambda order, secrets: print(secrets.read("parallelrun/c")))
print(pid)
layout = ClusterLayout(home=Path({str(tmp_path)!r}))
services = cluster_services(layout, redis_url="u", port=1, token="t", nodes=1, slots=1)
print(*(service.name for service in services if "moon://tycho" in service.environment.values()))
assert "moon" not in services[0].environment["PARALLELRUN_CLOSED_FOLDERS"]
assert "MOON_TOKEN" not in dict(template_of(Path({str(tmp_path / "plan")!r}), "job_x", "anna").environment)
SlurmCompute(name="far", type="slurm", max_instances=1, secrets_dir="moon://tycho")
"""
    copy = dropped(_SECRETS)
    log = tmp_path / "log"
    moon = {"PARALLELRUN_SECRETS_DIR": "moon://tycho", "MOON_TOKEN": "t", "MOON_LOG": str(log)}
    content, forked, services = copy.run("-c", program, **moon).splitlines()
    assert (content, services) == ("b'parallelrun/c of moon://tycho'", "master node1 concatenator")
    lines = [line.partition(" ") for line in log.read_text().splitlines()]
    assert [text for pid, _, text in lines if pid == forked] == [
        "source 2 got token 1", "source 2 asked for a", "source 2 gave back token 1",
    ]  # fmt: skip
    assert [text for pid, _, text in lines if pid != forked] == [
        "source 1 got token 1", "source 1 asked for a", "source 1 asked for b", "source 1 gave back token 1",
        "source 2 got token 1", "source 2 asked for parallelrun/c", "source 2 gave back token 1",
    ]  # fmt: skip


def test_the_workers_of_a_job_get_secrets_from_the_one_source_of_their_agent(
    dropped: Callable[[str], Copy], tmp_path: Path
) -> None:
    log = tmp_path / "log"
    script = "import os\ndef run(mini_batch):\n    return [','.join(os.environ[name] for name in 'ABCD')]\n"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text(script)
    (tmp_path / "data").mkdir()
    for number in range(4):
        (tmp_path / "data" / f"{number}.txt").touch()
    job = {
        "code": "src", "entry_script": "main.py", "inputs": {"data": {"path": "data"}}, "mini_batch_size": 1,
        "secrets": {name: {"file": name.lower()} for name in "ABCD"},
    }  # fmt: skip
    (tmp_path / "job.yml").write_text(json.dumps(job))
    moon = {"PARALLELRUN_SECRETS_DIR": "moon://tycho", "MOON_TOKEN": "t", "MOON_LOG": str(log)}
    line = ("run", str(tmp_path / "job.yml"), "--processes", "2", "--output", str(tmp_path / "out"))
    dropped(_SECRETS).command(*line, **moon)
    row = ",".join(f"{name} of moon://tycho" for name in "abcd")
    assert (tmp_path / "out" / "parallel_run_step.txt").read_text().splitlines() == [row] * 4
    lines = [line.partition(" ") for line in log.read_text().splitlines()]
    assert len({pid for pid, _, _ in lines}) == 1
    texts = [text.removeprefix("source 1 ") for _, _, text in lines]
    tokens = [text for text in texts if text.startswith("got token")]
    assert tokens == [f"got token {number}" for number in range(1, len(tokens) + 1)]
    assert (texts[0], texts[-1]) == ("got token 1", f"gave back token {len(tokens)}")
    assert len(tokens) > 1, "a token is good for three of the four"


def test_a_destination_is_told_of_the_ends_of_those_jobs_that_want_it(
    dropped: Callable[[str], Copy], tmp_path: Path
) -> None:
    program = f"""
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from parallelrun_core.folder.job_folder import JobFolder
from parallelrun_core.folder.records import JobRecord, JobResult
from parallelrun_core.layout import outbox_of
from parallelrun_core.retention.references import References
from parallelrun_core.wire.progress import Progress
from parallelrun_core.wire.states import JobState
from parallelrun_master.destinations import deliveries, destinations_of
from parallelrun_master.outbox.entries import enqueue, owed
from parallelrun_master.settings import MasterSettings
from tests.unit.agent.test_plans import template_of

secrets = Path({str(tmp_path / "secrets")!r})
(secrets / "parallelrun").mkdir(parents=True)
secrets.chmod(0o700)
(secrets / "parallelrun" / "bell").write_text("loud")
settings = MasterSettings(
    root=Path({str(tmp_path / "root")!r}), redis_url="redis://127.0.0.1:1", secrets_dir=str(secrets)
)
for job_id, tags in (("job_00000000000000000001", {{"bell": "on"}}), ("job_00000000000000000002", {{}})):
    folder = JobFolder(settings.root, job_id)
    folder.create(JobRecord(job_id=job_id, submitted=1.0, code="", spec={{"tags": tags}}))
    for notes in destinations_of(folder, folder.record(), 0, None):
        enqueue(notes, job_id, 0)
    folder.conclude(JobResult(job_id=job_id, state=JobState.COMPLETED, started=2.0, ended=3.0, progress=Progress()))
references = References(settings.root)
references.read_documents()
assert list(references.jobs) == ["job_00000000000000000001"], "it is kept while it is owed"
notes = outbox_of(settings.root, "bell")
module = deliveries(settings)[notes]
subprocess.run([sys.executable, "-m", module], input=import_module(module).order_of(settings, owed(notes), 9.0))
assert owed(notes) == []
print(*((path.name, path.read_text()) for path in settings.root.glob("rung.*")))
"""
    rung = dropped("a destination of ends of jobs, such as e-mail").run("-c", program)
    assert rung == "('rung.job_00000000000000000001', 'completed loud')\n"
    with pytest.raises(InvalidInput, match="no job can have it"):
        JobSpec.parse({"entry_script": "e.py", "inputs": "/d", "secrets": {"LOUDNESS": {"file": "parallelrun/bell"}}})
    with pytest.raises(ValueError, match="call it parallelrun/bell/loudness"):
        SecretsOfServices(ProcessSecrets(str(tmp_path / "secrets"))).read("bell/loudness")


def test_a_finding_is_part_of_the_advice(dropped: Callable[[str], Copy]) -> None:
    program = "from tests.unit.adviser.jobs import ids, went; print(ids(went([9.0])))"
    assert "wrong_planet" in dropped("what the adviser finds").run("-c", program)


def test_a_check_is_made_by_doctor_here_and_by_each_node(dropped: Callable[[str], Copy], tmp_path: Path) -> None:
    copy = dropped("what `parallelrun doctor` checks")
    program = (
        "from pathlib import Path; from parallelrun.doctor.checkup import checkup;"
        f"from parallelrun_core.wire.finding import Place; place = Place(root=Path({str(tmp_path)!r}));"
        "print([each.what for each in checkup(place) if each.subject in ('moon', 'orbit')])"
    )
    assert copy.run("-c", program).strip() == "['the orbit is round', 'the moon is full']"
    at_node = "from parallelrun_core import checks; print('orbit' in checks.subjects_in(checks))"
    assert copy.run("-c", at_node).strip() == "True"
