"""What is sent to Kubernetes for a node, and what its answers are taken for. A real one: tests/engines."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from pydantic import ValidationError

from parallelrun_core.computes.kinds.kubernetes import KubernetesCompute
from parallelrun_core.computes.launch import Launch, Shape
from parallelrun_provisioner.engines.interface import EngineEnvironment, EngineError, LaunchRefused, NodeStanding
from parallelrun_provisioner.engines.kubernetes import KubernetesEngine
from parallelrun_provisioner.engines.kubernetes.access import from_file
from parallelrun_provisioner.engines.kubernetes.listing import node_of
from parallelrun_provisioner.engines.kubernetes.settings import KubernetesSettings

ID = "cpu-0123456789ab"
OTHER_ID = "cpu-ba9876543210"
AROUND = EngineEnvironment(cluster="c1", root=Path("/data"), redis_url="redis://redis:6379/0")


def compute(**fields: object) -> KubernetesCompute:
    return KubernetesCompute.model_validate({"type": "kubernetes", "name": "cpu", **fields})


def planned(settings: KubernetesSettings | None = None, launch: Launch | None = None, **fields: object) -> Any:
    engine = KubernetesEngine(compute(**fields), AROUND, settings or KubernetesSettings())
    return yaml.safe_load(engine.plan(launch or Launch(id=ID, compute="cpu", arguments=("--node", ID))))


class Api(BaseHTTPRequestHandler):
    """As much of Kubernetes as the calls of an engine need."""

    server: Server

    def _answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _begin(self) -> bool:
        self.server.seen.append((self.command, self.path, self.headers.get("Authorization", "")))
        if self.server.refusal is not None:
            status, message = self.server.refusal
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self._answer(status, {"kind": "Status", "message": message})
        return self.server.refusal is None

    def do_POST(self) -> None:
        if self._begin():
            pod = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            there = pod["metadata"]["name"] in self.server.pods
            self.server.pods.setdefault(pod["metadata"]["name"], {**pod, "status": {"phase": "Pending"}})
            self._answer(409 if there else 201, {"message": "there is one"} if there else pod)

    def do_GET(self) -> None:
        if "/serviceaccounts/" in self.path:
            self._answer(200, {"metadata": {"uid": f"uid-of-{self.path.rpartition('/')[2]}"}})
        elif self._begin():
            query = parse_qs(urlsplit(self.path).query)
            wanted = dict(pair.split("=") for pair in query["labelSelector"][0].split(","))
            pods = [pod for pod in self.server.pods.values() if wanted.items() <= pod["metadata"]["labels"].items()]
            begin = int(query.get("continue", ["0"])[0])
            more = str(begin + 1) if begin + 1 < len(pods) else ""
            self._answer(200, {"items": pods[begin : begin + 1], "metadata": {"continue": more}})

    def do_DELETE(self) -> None:
        if self._begin():
            gone = self.server.pods.pop(self.path.rpartition("/")[2], None)
            self._answer(200 if gone else 404, gone or {"message": "not found"})

    def log_message(self, *_: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    """The API, on a port of its own."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Api)
        self.pods: dict[str, dict[str, Any]] = {}
        self.seen: list[tuple[str, str, str]] = []
        self.refusal: tuple[int, str] | None = None

    def engine(self, folder: Path, account: str = "", **fields: object) -> KubernetesEngine:
        config = {
            "current-context": "here",
            "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "batch"}}],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server_port}"}}],
            "users": [{"name": "u", "user": {"token": "hush"}}],
        }
        (folder / "kubeconfig").write_text(yaml.safe_dump(config))
        settings = KubernetesSettings(kubeconfig=folder / "kubeconfig", service_account=account)
        return KubernetesEngine(compute(**fields), AROUND, settings)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


class TestPod:
    def test_it_may_do_nothing_that_a_node_does_not_need(self) -> None:
        spec = planned()["spec"]
        [agent] = spec["containers"]
        assert spec["restartPolicy"] == "Never"
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert agent["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        assert all("hostPath" not in volume for volume in spec["volumes"])

    def test_it_is_what_the_compute_says(self) -> None:
        pod = planned(
            KubernetesSettings(
                image="agent:1", images="team/*", volumes="data:/data,inputs:/inputs:ro", pull_secrets="login",
                redis_secret="redis", secrets="of-jobs",
            ),
            image="team/special:2", cpus=3.5, memory_bytes=1 << 30, gpus=2, stop_seconds=30, tier="low_priority",
            low_priority={"node_selector": {"spot": "true"}, "tolerations": [{"key": "spot", "operator": "Exists"}]},
        )  # fmt: skip
        [agent] = pod["spec"]["containers"]
        limits = {"cpu": "3.5", "memory": str(1 << 30), "nvidia.com/gpu": "2"}
        assert agent["image"] == "team/special:2"
        assert agent["resources"] == {"requests": limits, "limits": limits}
        assert agent["args"] == ["--node", ID]
        variables = {each["name"]: each for each in agent["env"]}
        assert variables["PARALLELRUN_SLOTS"]["value"] == "3"
        assert variables["PARALLELRUN_REDIS_SECRET"]["valueFrom"]["secretKeyRef"] == {"name": "redis", "key": "agent"}
        assert agent["envFrom"] == [{"secretRef": {"name": "of-jobs"}}]
        mounts = {each["mountPath"]: each.get("readOnly", False) for each in agent["volumeMounts"]}
        assert mounts == {"/tmp": False, "/dev/shm": False, "/cache": False, "/data": False, "/inputs": True}
        assert pod["spec"]["nodeSelector"] == {"spot": "true"}
        assert pod["spec"]["tolerations"] == [{"key": "spot", "operator": "Exists"}]
        assert pod["spec"]["terminationGracePeriodSeconds"] == 30
        assert pod["spec"]["imagePullSecrets"] == [{"name": "login"}]

    def test_environments_are_kept_where_only_the_agent_can_write(self) -> None:
        spec = planned()["spec"]
        [maker], [agent] = spec["initContainers"], spec["containers"]
        assert maker["command"] == ["mkdir", "-p", "-m", "0700", "/volume/own"]
        assert maker["securityContext"] == agent["securityContext"]
        [cache] = [each for each in agent["volumeMounts"] if each["mountPath"] == "/cache"]
        assert cache == {"name": maker["volumeMounts"][0]["name"], "mountPath": "/cache", "subPath": "own"}

    def test_nodes_can_share_what_they_have_built(self) -> None:
        volumes = {each["name"]: each for each in planned(KubernetesSettings(cache="built"))["spec"]["volumes"]}
        assert volumes["cache"] == {"name": "cache", "persistentVolumeClaim": {"claimName": "built"}}

    def test_a_node_of_another_image_runs_our_agent_which_it_can_not_change(self) -> None:
        settings = KubernetesSettings(kit="parallelrun-kit", images="team/*")
        pod = planned(settings, Launch(id=ID, compute="cpu", shape=Shape(image="team/a:1")), cpus=2, gpus=1)
        [before], [agent] = pod["spec"]["initContainers"], pod["spec"]["containers"]
        [brought] = [each for each in agent["volumeMounts"] if each["name"] == "kit"]
        [target] = [each["mountPath"] for each in before["volumeMounts"] if each["name"] == "kit"]

        assert before["image"] == "parallelrun-kit"
        assert before["command"] == [
            "sh", "-c", f"mkdir -p -m 0700 /volume/own && cp -R /opt/parallelrun/. {target}",
        ]  # fmt: skip
        assert before["securityContext"] == agent["securityContext"]
        assert (before["resources"]["limits"], before["resources"]["requests"]) == ({"cpu": "2"}, {"cpu": "2"})
        assert agent["image"] == "team/a:1"
        assert agent["command"] == ["/opt/parallelrun/venv/bin/python", "-I", "-m", "parallelrun_agent.main"]
        assert agent["workingDir"] == "/"
        assert brought == {"name": "kit", "mountPath": "/opt/parallelrun", "readOnly": True}
        assert {"name": "PARALLELRUN_IMAGE", "value": "team/a:1"} in agent["env"]
        assert node_of({**pod, "status": {"phase": "Running"}}).image == "team/a:1"

    def test_a_node_of_our_image_needs_nothing_else(self) -> None:
        pod = planned(KubernetesSettings(kit="parallelrun-kit"))
        assert pod["spec"]["initContainers"][0]["image"] == "parallelrun-agent"
        assert all(volume["name"] != "kit" for volume in pod["spec"]["volumes"])
        assert node_of({**pod, "status": {"phase": "Running"}}).image == ""

    def test_words_of_users_are_no_variables_of_kubernetes(self) -> None:
        pod = planned(launch=Launch(id=ID, compute="cpu", arguments=("$(PARALLELRUN_REDIS_SECRET)", "$$(A)", "$5")))
        assert pod["spec"]["containers"][0]["args"] == ["$$(PARALLELRUN_REDIS_SECRET)", "$$$(A)", "$5"]

    @pytest.mark.parametrize(
        "settings, launch, fields, words",
        [
            ({}, {"shape": Shape(image="jobs/own")}, {}, "PARALLELRUN_KUBERNETES_KIT"),
            ({"kit": "kit"}, {"shape": Shape(image="jobs/own")}, {}, "PARALLELRUN_KUBERNETES_IMAGES"),
            ({"kit": "kit"}, {"shape": Shape(image="kit")}, {}, "PARALLELRUN_KUBERNETES_IMAGES"),
            ({"images": "team/*"}, {}, {"image": "other/x"}, "PARALLELRUN_KUBERNETES_IMAGES"),
        ],
    )
    def test_what_the_operator_does_not_allow(
        self, settings: dict[str, Any], launch: dict[str, Any], fields: dict[str, Any], words: str
    ) -> None:
        with pytest.raises(LaunchRefused, match=words):
            planned(KubernetesSettings(**settings), Launch(id=ID, compute="cpu", **launch), **fields)

    @pytest.mark.parametrize(
        "fields, words",
        [
            ({"name": "CPU"}, "upper-case"),
            ({"tier": "low_priority"}, "needs low_priority"),
            ({"placement": {"node_selector": {"a b": "c"}}}, "no label"),
            ({"pids": 100}, "podPidsLimit"),
            ({"environment_variables": {"PARALLELRUN_ROOT": "/"}}, "can't be set"),
        ],
    )
    def test_what_would_not_work_is_refused(self, fields: dict[str, object], words: str) -> None:
        with pytest.raises(ValidationError, match=words):
            compute(**fields)


class TestCalls:
    def test_from_launch_to_end(self, server: Server, tmp_path: Path) -> None:
        engine, launch = server.engine(tmp_path), Launch(id=ID, compute="cpu")
        engine.launch(launch)
        engine.launch(launch)
        engine.launch(Launch(id="cpu-ba9876543210", compute="cpu"))
        server.pods["other"] = {"metadata": {"name": "other", "labels": {"parallelrun.io/cluster": "c2"}}}
        assert [(node.launch_id, node.standing) for node in engine.nodes()] == [
            (ID, NodeStanding.PENDING), ("cpu-ba9876543210", NodeStanding.PENDING),
        ]  # fmt: skip
        engine.terminate([ID, "other"])
        engine.terminate([ID])
        assert set(server.pods) == {"cpu-ba9876543210", "other"}
        assert all(path.startswith("/api/v1/namespaces/batch/pods") for _, path, _ in server.seen)
        assert {login for _, _, login in server.seen} == {"Bearer hush"}
        engine.close()

    def test_nodes_belong_to_their_account_so_that_none_outlives_it(self, server: Server, tmp_path: Path) -> None:
        server.engine(tmp_path, account="pr-node").launch(Launch(id=ID, compute="cpu"))
        [owner] = server.pods[ID]["metadata"]["ownerReferences"]
        assert owner == {"apiVersion": "v1", "kind": "ServiceAccount", "name": "pr-node", "uid": "uid-of-pr-node"}
        server.engine(tmp_path).launch(Launch(id=OTHER_ID, compute="cpu"))
        assert "ownerReferences" not in server.pods[OTHER_ID]["metadata"]

    def test_a_refusal_is_in_the_words_of_kubernetes(self, server: Server, tmp_path: Path) -> None:
        server.refusal = 403, "exceeded quota: pods"
        engine = server.engine(tmp_path)
        with pytest.raises(LaunchRefused, match=r"^exceeded quota: pods$"):
            engine.launch(Launch(id=ID, compute="cpu"))
        engine.close()

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_what_may_pass_is_no_refusal(self, server: Server, tmp_path: Path, status: int) -> None:
        server.refusal = status, "later"
        engine = server.engine(tmp_path)
        with pytest.raises(EngineError, match="later") as raised:
            engine.launch(Launch(id=ID, compute="cpu"))
        assert not isinstance(raised.value, LaunchRefused)
        with pytest.raises(EngineError):
            engine.nodes()
        engine.close()

    def test_one_that_does_not_answer_is_named_without_the_token(self, server: Server, tmp_path: Path) -> None:
        engine = server.engine(tmp_path)
        server.server_close()
        with pytest.raises(EngineError, match=r"doesn't answer at http://127\.0\.0\.1") as raised:
            engine.nodes()
        assert "hush" not in str(raised.value)
        engine.close()


_WAITS = {"waiting": {"reason": "PodInitializing"}}
"""An agent whose Pod is being prepared."""


def pod(phase: str, *, state: dict[str, Any] | None = None, **status: object) -> dict[str, Any]:
    containers = [{"state": state}] if state else []
    return {"metadata": {"name": ID}, "status": {"phase": phase, "containerStatuses": containers, **status}}


@pytest.mark.parametrize(
    "given, standing, words, was_preempted",
    [
        (pod("Running"), NodeStanding.RUNNING, "", False),
        (pod("Unknown", reason="NodeLost"), NodeStanding.RUNNING, "NodeLost", False),
        (
            pod("Pending", conditions=[{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                                        "message": "0/1 nodes are available: 1 Insufficient cpu."}]),
            NodeStanding.PENDING, "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu.", False,
        ),
        (
            pod("Pending", state={"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image x"}}),
            NodeStanding.PENDING, "ImagePullBackOff: Back-off pulling image x", False,
        ),
        (
            pod("Pending", state=_WAITS, initContainerStatuses=[
                {"state": {"waiting": {"reason": "ErrImagePull", "message": "there is no kit"}}}]),
            NodeStanding.PENDING, "ErrImagePull: there is no kit", False,
        ),
        (
            pod("Pending", state={"waiting": {"reason": "ErrImagePull", "message": "there is no image"}},
                initContainerStatuses=[{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]),
            NodeStanding.PENDING, "ErrImagePull: there is no image", False,
        ),
        (
            pod("Pending", state=_WAITS, initContainerStatuses=[{"state": {"running": {}}}]), NodeStanding.PENDING,
            "", False,
        ),
        (
            pod("Failed", state=_WAITS, initContainerStatuses=[
                {"state": {"terminated": {"exitCode": 1, "reason": "Error", "message": "No space left on device"}}}]),
            NodeStanding.ENDED, "Error: exit code 1: No space left on device", False,
        ),
        (
            pod("Failed", reason="Evicted", message="The node was low on resource: memory."),
            NodeStanding.ENDED, "Evicted: The node was low on resource: memory.", True,
        ),
        (pod("Failed", conditions=[{"type": "DisruptionTarget", "status": "True"}]), NodeStanding.ENDED, "", True),
        (
            pod("Failed", state={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
            NodeStanding.ENDED, "OOMKilled: exit code 137", False,
        ),
        (
            pod("Failed", state={"terminated": {"exitCode": 3, "reason": "Error", "message": "a\nRedis is not fit\n"}}),
            NodeStanding.ENDED, "Error: exit code 3: Redis is not fit", False,
        ),
        (pod("Succeeded", state={"terminated": {"exitCode": 0, "reason": "Completed"}}), NodeStanding.ENDED, "", False),
    ],
)  # fmt: skip
def test_standings(given: dict[str, Any], standing: NodeStanding, words: str, was_preempted: bool) -> None:
    node = node_of(given)
    assert (node.standing, node.words, node.was_preempted) == (standing, words, was_preempted)


class TestAccess:
    def test_a_login_by_a_program_is_refused_with_what_to_do(self, tmp_path: Path) -> None:
        config = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": "https://h"}}],
            "users": [{"name": "u", "user": {"exec": {"command": "login"}}}],
        }
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        with pytest.raises(EngineError, match="give it a token"):
            from_file(tmp_path / "config")

    @pytest.mark.parametrize("text", ["", "a: [", "current-context: x\ncontexts: []\n", "- 1\n"])
    def test_what_is_no_kubeconfig_is_said(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "config").write_text(text)
        with pytest.raises(EngineError, match="can't be used as a kubeconfig"):
            from_file(tmp_path / "config")

    def test_a_broken_authority_is_said(self, tmp_path: Path) -> None:
        config = {
            "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "c"}}],
            "clusters": [
                {"name": "c", "cluster": {
                    "server": "https://h", "certificate-authority-data": base64.b64encode(b"no").decode()}}
            ],
        }  # fmt: skip
        (tmp_path / "config").write_text(yaml.safe_dump(config))
        with pytest.raises(EngineError, match="kubeconfig"):
            from_file(tmp_path / "config")

    def test_outside_of_a_pod_it_says_what_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
        engine = KubernetesEngine(compute(), AROUND, KubernetesSettings())
        with pytest.raises(EngineError, match="PARALLELRUN_KUBERNETES_KUBECONFIG"):
            engine.nodes()
