"""Pods of a Kubernetes cluster with one machine, which is this one."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, Self

from parallelrun_core.computes.launch import compute_of
from tests.engines.target import Missing
from tests.engines.targets.docker import build

_TOOL: Final = Path(__file__).parents[1] / "start" / "kubernetes.sh"
"""Builds Kubernetes and brings up a cluster on one machine, as root on Debian: in half a minute once it is built."""
_START_S: Final = 300
_ASK_S: Final = 60
_GIB: Final = "1Gi"


class Kubernetes:
    """The cluster that `KUBECONFIG` names, in a namespace of the test's own."""

    name = "kubernetes"
    has_images = True

    def __init__(self) -> None:
        self.namespace = f"parallelrun-{secrets.token_hex(4)}"
        self._volumes: list[str] = []

    def __enter__(self) -> Self:
        if "KUBECONFIG" not in os.environ and os.environ.get("CI"):
            subprocess.run([_TOOL, "up"], check=True, timeout=_START_S)
            said = subprocess.run([_TOOL, "env"], capture_output=True, text=True, timeout=_ASK_S, check=True).stdout
            for line in said.replace(";", "\n").splitlines():
                name, _, value = line.strip().removeprefix("export ").partition("=")
                os.environ[name] = os.path.expandvars(value)
        try:
            kubectl("create", "namespace", self.namespace)
        except (OSError, subprocess.SubprocessError) as error:
            said = " ".join(str(getattr(error, "stderr", "") or error).split())
            raise Missing(f"no Kubernetes answers: {said}; name one in KUBECONFIG, or start {_TOOL}") from error
        self._image, self._kit = build("agent"), build("kit")
        return self

    def __exit__(self, *_: object) -> None:
        kubectl("delete", "namespace", self.namespace, "--wait=false")
        for volume in self._volumes:
            kubectl("delete", "persistentvolume", volume, "--wait=false")

    def document(self) -> dict[str, Any]:
        return {"type": self.name, "slots": 1, "stop_seconds": 30}

    def environment(self, seen: Collection[Path], secret: Path) -> dict[str, str]:
        claims = [f"{self._claim(folder)}:{folder}" for folder in seen]
        cache = secret.parent / "cache"
        cache.mkdir()
        kubectl(
            "create", "secret", "generic", "redis", f"--from-file=agent={secret / 'secret'}",
            f"--namespace={self.namespace}",
        )  # fmt: skip
        return {
            "PARALLELRUN_KUBERNETES_KUBECONFIG": os.environ["KUBECONFIG"],
            "PARALLELRUN_KUBERNETES_NAMESPACE": self.namespace,
            "PARALLELRUN_KUBERNETES_IMAGE": self._image,
            "PARALLELRUN_KUBERNETES_IMAGES": "parallelrun-with-*",
            "PARALLELRUN_KUBERNETES_KIT": self._kit,
            "PARALLELRUN_KUBERNETES_CACHE": self._claim(cache),
            "PARALLELRUN_KUBERNETES_IMAGE_PULL_POLICY": "Never",
            "PARALLELRUN_KUBERNETES_VOLUMES": ",".join(claims),
            "PARALLELRUN_KUBERNETES_REDIS_SECRET": "redis",
            # The services are this test's user, and so must nodes be: the owner of the volume.
            "PARALLELRUN_KUBERNETES_USER": f"{os.getuid()}:{os.getgid()}",
        }

    def left(self) -> list[str]:
        return list(self._phases())

    def remove(self, launch_id: str) -> None:
        self.kill(launch_id)

    def running(self) -> list[str]:
        return [name for name, phase in self._phases().items() if phase in ("Pending", "Running")]

    def _phases(self) -> dict[str, str]:
        """The phase of each Pod that is a node."""
        pods = json.loads(kubectl("get", "pods", f"--namespace={self.namespace}", "--output=json"))["items"]
        phases = {str(pod["metadata"]["name"]): str(pod["status"].get("phase")) for pod in pods}
        return {name: phase for name, phase in phases.items() if compute_of(name)}

    def kill(self, launch_id: str) -> None:
        kubectl(
            "delete", "pod", launch_id, f"--namespace={self.namespace}", "--grace-period=0", "--force",
            "--ignore-not-found", "--wait=false",
        )  # fmt: skip

    def _claim(self, folder: Path) -> str:
        """A claim for this folder of the machine, which all Pods share."""
        number = len(self._volumes)
        volume, claim = f"{self.namespace}-{number}", f"folder-{number}"
        common = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        apply({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume},
            "spec": {**common, "capacity": {"storage": _GIB}, "hostPath": {"path": str(folder)},
                     "claimRef": {"namespace": self.namespace, "name": claim}},
        })  # fmt: skip
        apply({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": claim, "namespace": self.namespace},
            "spec": {**common, "resources": {"requests": {"storage": _GIB}}, "volumeName": volume},
        })  # fmt: skip
        self._volumes.append(volume)
        return claim


def kubectl(*arguments: str, stdin: str = "") -> str:
    """What kubectl prints."""
    done = subprocess.run(
        ["kubectl", *arguments], input=stdin, capture_output=True, text=True, timeout=_ASK_S, check=True
    )
    return done.stdout


def apply(manifest: dict[str, Any]) -> None:
    """Make an object."""
    kubectl("apply", "--filename=-", stdin=json.dumps(manifest))


def reach() -> Kubernetes:
    return Kubernetes()
