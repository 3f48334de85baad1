"""Models. Their content: type, path, flavors."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from parallelrun_core.assets.definition import WithPath


class ModelAsset(WithPath):
    """A model: a folder or a file, of whatever kind."""

    type: Literal["custom_model", "mlflow_model", "triton_model"] = "custom_model"
    flavors: dict[str, Any] = Field(default_factory=dict)
    stage: str | None = None
    """For people."""

    def content(self) -> dict[str, Any]:
        return {"type": self.type, "path": self.path, **({"flavors": self.flavors} if self.flavors else {})}


DOCUMENT: Final = ModelAsset
