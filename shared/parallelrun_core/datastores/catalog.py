"""The datastores of a cluster: a document for each below its root folder, without any secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, TypeAlias

from parallelrun_core.datastores.definition import ANY, Datastore
from parallelrun_core.documents.codecs import FieldsCodec
from parallelrun_core.documents.collection import Definitions
from parallelrun_core.documents.file_store import FileStore

DatastoreCatalog: TypeAlias = Definitions[Datastore]
_FOLDER: Final = "datastores"
_MAX_BYTES: Final = 1 << 20


def datastore_catalog(root: Path) -> DatastoreCatalog:
    """Returns the datastores below a cluster's root folder."""
    return Definitions(
        FileStore(root, _FOLDER, max_bytes=_MAX_BYTES),
        FieldsCodec(_fields, _datastore, repair_hint="define it again"),
        noun="datastore",
        create_hint="define one with `parallelrun datastore create -f FILE` (docs/storage.md)",
    )


def _fields(definition: Datastore) -> dict[str, object]:
    fields: dict[str, object] = definition.model_dump(mode="json", exclude_defaults=True)
    return fields


def _datastore(fields: dict[str, Any]) -> Datastore:
    definition: Datastore = ANY.validate_json(json.dumps(fields))
    return definition
