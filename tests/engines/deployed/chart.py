"""The Helm chart on a Kubernetes of one machine: all of it, by Helm's own code, and what its notes say."""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import yaml

from tests.acceptance import engine as docker_engine
from tests.acceptance.http_user import HttpUser
from tests.engines.deployed.install import OPERATOR, TOKENS
from tests.engines.deployed.names import named
from tests.engines.images import with_environment
from tests.engines.targets.docker import ROOT, build
from tests.engines.targets.kubernetes import apply, kubectl

CHART: Final = ROOT / "deploy" / "helm" / "parallelrun"
_HELM: Final = (ROOT / ".environments" / "chart" / "bin" / "python", Path(__file__).with_name("helm.py"))
_RELEASE: Final = "pr"
_READY_S: Final = 240
_ASKED_S: Final = 0.5
_USER: Final = 10001
_OURS: Final = "pods,deployments,statefulsets,services,secrets,configmaps,roles,rolebindings,persistentvolumeclaims"


class Chart:
    """A release; made by `installed`."""

    name = "kubernetes"

    def __init__(self, namespace: str, folder: Path, values: dict[str, Any]) -> None:
        self.namespace = namespace
        self._folder = folder
        self._values = values

    def user(self, token: str = "") -> HttpUser:
        """A user with this token, or that which the notes name."""
        [pod] = self._pods("api")
        secret = json.loads(kubectl("get", "secret", f"{_RELEASE}-api", "--output=json", f"-n={self.namespace}"))
        own = base64.b64decode(secret["data"]["token"]).decode()
        user = HttpUser(f"http://{pod['status']['podIP']}:8080", token or own)
        user.client.headers["Host"] = "localhost"  # as by port-forward
        return user

    def document(self) -> dict[str, Any]:
        """A compute of this engine."""
        return {"type": self.name, "slots": 1, "idle_time_before_scale_down": 1, "stop_seconds": 10}

    def inputs(self, count: int) -> str:
        """A folder with that many inputs, as jobs name it."""
        for number in range(count):
            (self._folder / "inputs" / f"{number}.txt").write_text(f"{number}\n")
        return "/inputs"

    def nodes(self) -> list[str]:
        """The nodes that the engine has."""
        return [pod["metadata"]["name"] for pod in self._pods("agent")]

    def image(self) -> str:
        """As `Installation.image`."""
        with closing(docker_engine.reach()) as client:
            return with_environment(client)

    def upgrade(self) -> None:
        """Install it anew, with one more master."""
        self._values["master"] = {"replicas": 2}
        self.helm("upgrade")

    def remove(self) -> None:
        """Uninstall it."""
        self.helm("uninstall")

    def helm(self, action: str) -> dict[str, Any]:
        """What Helm says of an action that has succeeded."""
        asked = {
            "action": action, "release": _RELEASE, "namespace": self.namespace, "chart": str(CHART),
            "values": self._values, "kubeconfig": os.environ["KUBECONFIG"], "timeout_s": _READY_S,
        }  # fmt: skip
        done = subprocess.run(
            _HELM, input=json.dumps(asked), capture_output=True, text=True, timeout=_READY_S + 60, check=False
        )
        assert done.returncode == 0, f"{done.stderr[-2000:]}\n{self._state()}"
        said: dict[str, Any] = json.loads(done.stdout)
        return said

    def left(self) -> list[str]:
        """What is there of the release: not what was there before."""
        there = kubectl("get", _OURS, f"-n={self.namespace}", "--output=name").split()
        own = ("secret/default-token-", "secret/tokens", "configmap/kube-root-ca.crt", "persistentvolumeclaim/inputs",
               "persistentvolumeclaim/outputs")  # fmt: skip
        return [name for name in there if not name.startswith(own)]

    def _pods(self, component: str) -> list[dict[str, Any]]:
        selector = f"app.kubernetes.io/component={component}"
        said = kubectl("get", "pods", f"-n={self.namespace}", f"--selector={selector}", "--output=json")
        return [pod for pod in json.loads(said)["items"] if "deletionTimestamp" not in pod["metadata"]]

    def _state(self) -> str:
        return kubectl("get", "pods,events", f"-n={self.namespace}", "--output=wide")


@contextmanager
def installed() -> Iterator[Chart]:
    """Install the chart in a namespace of its own; at the end nothing is left of it."""
    namespace = f"parallelrun-{secrets.token_hex(4)}"
    base = os.environ.get("BASE_IMAGE", "redis:7-bookworm")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pr-chart-")))
        folder.chmod(0o755)
        kubectl("create", "namespace", namespace)
        stack.callback(kubectl, "delete", "namespace", namespace, "--wait=false")
        kubectl("label", "namespace", namespace, f"parallelrun.test={namespace}")
        address = urlsplit(
            yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())["clusters"][0]["cluster"]["server"]
        ).hostname
        hook = stack.enter_context(named(namespace, str(address), folder, _Endpoints(namespace).of))
        apply(hook)
        stack.callback(kubectl, "delete", "mutatingwebhookconfiguration", hook["metadata"]["name"])
        for claim, mode in (("pr-data", "ReadWriteMany"), ("inputs", "ReadWriteMany"), ("outputs", "ReadWriteMany"),
                            ("pr-redis", "ReadWriteOnce")):  # fmt: skip
            stack.callback(kubectl, "delete", "pv", _volume(namespace, folder, claim, mode), "--wait=false")
        for claim in ("inputs", "outputs"):
            _claim(namespace, claim)
        kubectl("create", "secret", "generic", "tokens", f"--from-literal=tokens={TOKENS}", f"-n={namespace}")
        values = {
            "image": {"control": build("control"), "agent": build("agent"), "kit": build("kit"),
                      "pullPolicy": "Never"},
            "data": {"size": "1Gi", "deleteWithRelease": True},
            "redis": {"image": base, "size": "1Gi"},
            "api": {"tokensSecret": "tokens", "operators": [OPERATOR]},
            "volumes": [{"claim": "inputs", "path": "/inputs", "readOnly": True},
                        {"claim": "outputs", "path": "/outputs"}],
            "master": {"replicas": 1},
            "provisioner": {"images": ["parallelrun-with-*"]},
        }  # fmt: skip
        chart = Chart(namespace, folder, values)
        chart.helm("install")
        yield chart


def _volume(namespace: str, folder: Path, claim: str, mode: str) -> str:
    """Make a volume of this machine for a claim; returns its name."""
    path = folder / claim.removeprefix("pr-")
    path.mkdir()
    shutil.chown(path, _USER, _USER)
    name = f"{namespace}-{claim}"
    apply({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"accessModes": [mode], "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(path)},
                 "storageClassName": "", "persistentVolumeReclaimPolicy": "Retain",
                 "claimRef": {"namespace": namespace, "name": claim}},
    })  # fmt: skip
    return name


def _claim(namespace: str, name: str) -> None:
    apply({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace},
        "spec": {"accessModes": ["ReadWriteMany"], "storageClassName": "", "volumeName": f"{namespace}-{name}",
                 "resources": {"requests": {"storage": "1Gi"}}},
    })  # fmt: skip


class _Endpoints:
    """The addresses of a namespace's Pods by their Services, asked for now and then."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._known: dict[str, list[str]] = {}
        self._asked_at = 0.0

    def of(self, service: str) -> list[str]:
        if time.monotonic() - self._asked_at > _ASKED_S:
            items = json.loads(kubectl("get", "endpoints", f"-n={self._namespace}", "--output=json"))["items"]
            self._known = {
                each["metadata"]["name"]: [address["ip"] for subset in each.get("subsets") or ()
                                           for address in subset.get("addresses") or ()]
                for each in items
            }  # fmt: skip
            self._asked_at = time.monotonic()
        return self._known.get(service, [])
