"""Nodes that are Pods of a Kubernetes cluster, one Pod for each."""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from parallelrun_core.computes.containers import Containers
from parallelrun_core.described import Strict

_LABEL_VALUE: Final = r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$"
_LABEL_NAME: Final = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
)
_NAME: Final = r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$"


def _labels(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not _LABEL_NAME.fullmatch(name) or not re.fullmatch(_LABEL_VALUE, text):
            raise ValueError(f"{name[:80]!r} and its value are no label of Kubernetes")
    return value


Labels = Annotated[
    dict[str, str],
    AfterValidator(_labels),
    Field(json_schema_extra={
        "propertyNames": {"pattern": f"^{_LABEL_NAME.pattern}$"},
        "additionalProperties": {"type": "string", "pattern": _LABEL_VALUE},
    }),
]  # fmt: skip


class Toleration(Strict):
    """A taint of machines on which a node may be nevertheless; as in a Pod."""

    key: str = Field(default="", max_length=317)
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str = Field(default="", pattern=_LABEL_VALUE)
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = ""


class Placement(Strict):
    """On which machines a node may be."""

    node_selector: Labels = Field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()
    priority_class: str = Field(default="", pattern=_NAME)


class KubernetesCompute(Containers):
    """Each node is a Pod. What it may reach (volumes, secrets, the namespace) the provisioner's settings say."""

    has_images: ClassVar[bool] = True
    type: Literal["kubernetes"]
    placement: Placement = Placement()
    low_priority: Placement | None = None
    """Takes the place of `placement` for the tier low_priority, such as machines that may be taken away."""
    gpu_resource: str = Field(default="nvidia.com/gpu", pattern=r"^[a-z0-9.-]+/[A-Za-z0-9._-]+$")
    """The name of the resource that GPUs are there."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.name != self.name.lower():
            raise ValueError("name: Kubernetes has no upper-case letters in names")
        if self.tier == "low_priority" and self.low_priority is None:
            raise ValueError("tier low_priority needs low_priority, which says on which machines its nodes may be")
        for field, who in (("registry", "PARALLELRUN_KUBERNETES_PULL_SECRETS of the provisioner"),
                           ("pids", "podPidsLimit of the kubelet")):  # fmt: skip
            if getattr(self, field) != type(self).model_fields[field].default:
                raise ValueError(f"{field}: in Kubernetes, that is what {who} says")
        return self
