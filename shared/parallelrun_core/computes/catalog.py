"""The computes of a cluster: a document for each below its root folder, without any secret.

On some nodes, code of jobs is the services' user, and may write there. So a definition can be sealed, with a key that
only the API and the provisioner have; who has the key believes no other one.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from parallelrun_core.computes.definition import Compute
from parallelrun_core.computes.kinds import kinds, model_of
from parallelrun_core.documents.codecs import FieldsCodec, definition_fields
from parallelrun_core.documents.collection import Definitions, Documents
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.errors import CorruptLog, NewerSchema, NotFound
from parallelrun_core.names.patterns import COMPUTE_NAME
from parallelrun_core.service.telemetry import logger

_FOLDER: Final = "computes"
_NAME: Final = re.compile(COMPUTE_NAME)
_DELETED: Final = "deleted"
"""The collection below it of definitions that may still have nodes, for the provisioner to give back."""
_MAX_BYTES: Final = 1 << 20


class ComputeCatalog(Definitions[Compute]):
    """The computes below a cluster's root folder. Safe to share between threads and processes.

    Args:
        key: seals each definition that is put; one that was not sealed with it is a CorruptLog. Empty: no seals.
    """

    def __init__(self, root: Path, key: bytes = b"") -> None:
        store = FileStore(root, _FOLDER, max_bytes=_MAX_BYTES, follows_links=False)
        codec = FieldsCodec(definition_fields, _compute, key, repair_hint="define it again")
        super().__init__(
            store,
            codec,
            noun="compute",
            create_hint="define one with `parallelrun compute create -f FILE` (docs/computes.md)",
            is_name=_NAME.fullmatch,
        )
        self._deleted: Final = Documents(store.child(_DELETED), codec, noun="deleted compute")

    def find(self, name: str) -> Compute | None:
        """Returns the compute of this name as it is defined now; None if there is none.

        Raises:
            CorruptLog: its document can't be read as a definition of this name, or was not sealed with the key.
        """
        compute = super().find(name)
        if compute is not None and compute.name != name:
            raise CorruptLog(
                f"The compute {name!r} is defined as another compute, {compute.name!r}: define {name!r} again"
            )
        return compute

    def define(self, definition: Compute) -> bool:
        """Write a definition in place of the one of its name, durably; returns whether there was none."""
        with suppress(NotFound, CorruptLog):
            if (before := self.get(definition.name)).kind != definition.kind:
                self._record_deleted(before)  # its nodes are of another engine
        is_new = super().define(definition)
        self.forget_deleted(definition)  # its nodes are those of this one
        return is_new

    def remove(self, name: str) -> None:
        """Remove a compute; its nodes are given back by the provisioner. Raises NotFound."""
        with suppress(CorruptLog):
            self._record_deleted(self.get(name))
        super().remove(name)

    def deleted(self) -> list[Compute]:
        """Returns the computes that were deleted, or got another engine, and may still have nodes."""
        computes = []
        for key in self._deleted.names():
            with suppress(CorruptLog, NotFound, OSError):
                compute = self._deleted.get(key)
                if key == _deleted_key(compute):
                    computes.append(compute)
        return computes

    def forget_deleted(self, definition: Compute) -> None:
        """Record that no node of this deleted compute is left."""
        with suppress(NotFound):
            self._deleted.remove(_deleted_key(definition))

    def default(self) -> str:
        """The name of the compute of jobs that name none; empty: nodes without a compute run those.

        A definition that can't be read is none of a default one; the log names it.
        """
        for name in self.names():
            try:
                if self.get(name).is_default:
                    return name
            except (CorruptLog, NewerSchema, NotFound, OSError) as error:
                logger().warning("compute_unreadable", compute=name, error=str(error))
        return ""

    def _record_deleted(self, definition: Compute) -> None:
        self._deleted.put(_deleted_key(definition), definition)


def _compute(fields: dict[str, Any]) -> Compute:
    kind = fields["type"]
    if kind not in kinds():
        raise CorruptLog(f"It is a compute of a kind that this release doesn't know: {str(kind)[:50]!r}")
    return model_of(kind).model_validate(fields)


def _deleted_key(definition: Compute) -> str:
    return f"{definition.name}.{definition.kind}"
