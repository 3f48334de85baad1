"""The limits of a cluster: a document for each below its root folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeAlias

from parallelrun_core.documents.codecs import FieldsCodec
from parallelrun_core.documents.collection import Definitions
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.limits.definition import Limit

LimitCatalog: TypeAlias = Definitions[Limit]
_FOLDER: Final = "limits"
_MAX_BYTES: Final = 1 << 16


def limit_catalog(root: Path) -> LimitCatalog:
    """Returns the limits below a cluster's root folder."""
    return Definitions(
        FileStore(root, _FOLDER, max_bytes=_MAX_BYTES),
        FieldsCodec(_fields, Limit.model_validate, repair_hint="define it again"),
        noun="limit",
        create_hint="define one with `parallelrun limit create -f FILE`, or give `parallelrun run` a --limit FILE",
    )


def _fields(limit: Limit) -> dict[str, Any]:
    return limit.model_dump(mode="json", exclude_defaults=True)
