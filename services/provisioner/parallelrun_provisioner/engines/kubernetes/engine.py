"""Launches, lists and ends nodes that are Pods."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import yaml

from parallelrun_core.computes.kinds.kubernetes import KubernetesCompute
from parallelrun_core.computes.launch import Launch, compute_of
from parallelrun_provisioner.engines.interface import EngineEnvironment, EngineNode
from parallelrun_provisioner.engines.kubernetes.access import from_file, mounted
from parallelrun_provisioner.engines.kubernetes.api import Api
from parallelrun_provisioner.engines.kubernetes.listing import node_of
from parallelrun_provisioner.engines.kubernetes.pod import CLUSTER, COMPUTE, manifest
from parallelrun_provisioner.engines.kubernetes.settings import KubernetesSettings


class KubernetesEngine:
    """An engine whose nodes are Pods of the cluster in which the provisioner runs, or that its settings name."""

    def __init__(
        self,
        compute: KubernetesCompute,
        engine_environment: EngineEnvironment,
        settings: KubernetesSettings | None = None,
    ) -> None:
        self._compute = compute
        self._engine_env = engine_environment
        self._settings = settings or KubernetesSettings.from_environment()
        self._known: Api | None = None

    def plan(self, launch: Launch) -> str:
        """The manifest, as YAML; what Kubernetes knows the owner by is its own to say."""
        return yaml.safe_dump(self._manifest(launch), sort_keys=False)

    def launch(self, launch: Launch) -> None:
        """Create a Pod; names are unique, so a second time nothing happens."""
        owner = ""
        if self._settings.service_account:
            owner = self._api.uid_of_account(self._settings.service_account)
        self._api.create(self._manifest(launch, owner))

    def nodes(self) -> Sequence[EngineNode]:
        """The nodes of all Pods with our labels."""
        selector = f"{CLUSTER}={self._engine_env.cluster},{COMPUTE}={self._compute.name}"
        pods = list(self._api.list(selector))
        return [node_of(pod) for pod in pods if compute_of(pod["metadata"]["name"]) == self._compute.name]

    def terminate(self, launch_ids: Collection[str]) -> None:
        """Delete these Pods: their agents get SIGTERM, and `stop_seconds`."""
        for launch_id in launch_ids:
            if compute_of(launch_id) == self._compute.name:
                self._api.delete(launch_id)

    def close(self) -> None:
        if self._known is not None:
            self._known.close()
            self._known = None

    @property
    def _api(self) -> Api:
        """The API, once it is needed: a plan asks nobody. Raises EngineError."""
        if self._known is None:
            access = from_file(self._settings.kubeconfig) if self._settings.kubeconfig else mounted()
            self._known = Api(access, self._settings.namespace or access.namespace)
        return self._known

    def _manifest(self, launch: Launch, owner_uid: str = "") -> dict[str, Any]:
        self._settings.check_secret(self._engine_env.agent_secret, "the Secret")
        return manifest(self._compute, self._settings, self._engine_env.cluster, launch, owner_uid)
