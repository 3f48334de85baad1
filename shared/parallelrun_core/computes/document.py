"""Documents of computes: reads a definition from a user's YAML or JSON.

Azure ML's documents say `type: amlcompute`, which is no engine that people have. Here it is the kind that the field
`kind` names, which is ours, or the one of which the cluster at hand has nodes. Fields of Azure's that have no effect
here are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from parallelrun_core.computes.definition import Compute
from parallelrun_core.computes.kinds import kinds, model_of
from parallelrun_core.errors import InvalidInput
from parallelrun_core.problems import did_you_mean, validated
from parallelrun_core.spec.problems import problem_of

AMLCOMPUTE: Final = "amlcompute"
"""The type of Azure ML's documents."""
_NO_EFFECT: Final = (
    "location", "ssh_public_access_enabled", "ssh_settings", "network_settings", "identity", "enable_node_public_ip",
    "created_on", "provisioning_state", "resource_id", "id",
)  # fmt: skip
"""Fields of Azure ML's that say how to reach a machine of Azure, or what Azure has made of it."""
_SECRETS: Final = frozenset(
    {"password", "token", "secret", "api_token", "private_key", "client_key", "admin_user_password", "kubeconfig"}
)
"""What a definition might be thought to have."""


def has_no_kind(document: Mapping[str, Any]) -> bool:
    """Return whether a document is one of Azure ML's that leaves it to the cluster what its nodes are."""
    return str(document.get("type")).lower() == AMLCOMPUTE and "kind" not in document


def read_definition(document: object, *, name: str = "", main_kind: str = "") -> Compute:
    """The compute that a document defines.

    Args:
        name: what it must be called; then the document need not say so. Empty: what the document says.
        main_kind: what a document is that `has_no_kind`; empty: nobody knows, and it is refused.

    Raises:
        InvalidInput: with one problem for each wrong field. It repeats no secret.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at("", "the definition of a compute is a mapping", "see docs/computes.md")
    fields = {str(key): value for key, value in document.items() if key != "$schema"}
    for field in _SECRETS & fields.keys():
        hint = "the provisioner has the credentials of its engine, in its own environment or files (docs/computes.md)"
        raise InvalidInput.at(f"/{field}", "a secret doesn't belong into the definition of a compute", hint)
    model = _model(fields, main_kind)
    return validated(model, fields, name=name, problem_of=problem_of)


def _model(fields: dict[str, Any], main_kind: str) -> type[Compute]:
    """The model of the document's kind; the fields become those of this kind."""
    kind_names = [AMLCOMPUTE, *kinds()]
    kind = fields.get("type")
    if not isinstance(kind, str):
        hint = f"one of {', '.join(kind_names)}"
        raise InvalidInput.at("/type", "this field is required" if kind is None else "must be a string", hint)
    where = "/type"
    if kind.lower() == AMLCOMPUTE:
        for field in _NO_EFFECT:
            fields.pop(field, None)
        if isinstance(fields.get("tier"), str):
            fields["tier"] = fields["tier"].lower().replace("lowpriority", "low_priority")
        where = "/kind"
        kind = fields["type"] = str(fields.pop("kind", main_kind))
        if not kind:
            hint = f"one of {', '.join(kinds())}"
            raise InvalidInput.at(where, "no provisioner has said of which kinds it starts nodes: say which", hint)
    if kind not in kinds():
        hint = did_you_mean(kind.lower(), kind_names, f"one of {', '.join(kind_names)}")
        raise InvalidInput.at(where, f"a compute of type {kind[:50]!r} can't be had here", hint)
    return model_of(kind)
