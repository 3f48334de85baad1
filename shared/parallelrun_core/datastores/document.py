"""Documents of datastores: reads a definition from a user's YAML or JSON.

Azure ML's documents have keys and tokens in them. A definition is kept where the API, and whoever can read the root
folder, reads it; so a document with a secret is refused, and nothing of what the secret's field has is repeated.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, TypeAlias

from parallelrun_core.datastores.definition import ANY, OF_TYPE, SECRET_PATTERN, Datastore
from parallelrun_core.documents.codecs import FieldsCodec, definition_fields
from parallelrun_core.documents.collection import Definitions
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.errors import InvalidInput
from parallelrun_core.problems import did_you_mean, explain, location_of, validated

_IN_A_FILE: Final = (
    "put it into a file of the folder of secrets on each node (PARALLELRUN_SECRETS_DIR), and write "
    "`credentials: {secret: NAME-OF-THE-FILE}`; docs/storage.md says what is in such a file"
)
_SECRETS: Final = frozenset(
    {
        "account_key", "sas_token", "tenant_id", "client_id", "client_secret", "certificate", "thumbprint",
        "access_key_id", "secret_access_key", "session_token", "aws_access_key_id", "aws_secret_access_key",
        "private_key", "service_account", "service_account_key", "connection_string", "password",
    }
)  # fmt: skip
"""What a definition might be thought to have."""
_AZURE_ONLY: Final = ("azure_file", "azure_data_lake_gen1", "azure_sql", "azure_postgre_sql", "azure_my_sql", "hdfs")
_TYPES: Final = f"one of {', '.join(OF_TYPE)}"
DatastoreCatalog: TypeAlias = Definitions[Datastore]
_FOLDER: Final = "datastores"
_MAX_BYTES: Final = 1 << 20


def read_definition(document: object, *, name: str = "") -> Datastore:
    """The datastore that a document defines.

    Args:
        name: what it must be called; then the document need not say so. Empty: what the document says.

    Raises:
        InvalidInput: with one problem for each wrong field. It repeats no secret.
    """
    if not isinstance(document, dict):
        raise InvalidInput.at("", "the definition of a datastore is a mapping", "see docs/storage.md")
    fields = {str(key): value for key, value in document.items() if key != "$schema"}
    _check_credentials(fields)
    kind = fields.get("type")
    if not isinstance(kind, str):
        raise InvalidInput.at("/type", "this field is required" if kind is None else "must be a string", _TYPES)
    model = OF_TYPE.get(kind)
    if model is None:
        hint = _TYPES if kind in _AZURE_ONLY else did_you_mean(kind.lower(), OF_TYPE, _TYPES)
        raise InvalidInput.at("/type", f"a datastore of type {kind[:50]!r} can't be used here", hint)
    known_fields = model.model_fields
    return validated(
        model, fields, name=name, problem_of=lambda _, details: explain(details, location_of(details), known_fields)
    )


def _check_credentials(fields: dict[str, Any]) -> None:
    """Refuse what is, or may be, a secret. Only names of fields are repeated, and only those that are known."""
    for field in _SECRETS & fields.keys():
        raise InvalidInput.at(f"/{field}", "a secret doesn't belong into the definition of a datastore", _IN_A_FILE)
    if isinstance(fields.get("endpoint"), str) and set("@?#") & set(fields["endpoint"]):
        raise InvalidInput.at("/endpoint", "a URL with a user, a password or a signature is not taken", _IN_A_FILE)
    credentials = fields.get("credentials")
    if credentials is None:
        return
    if not isinstance(credentials, dict):
        raise InvalidInput.at("/credentials", "must be a mapping with the field `secret`", _IN_A_FILE)
    secret_names = sorted(_SECRETS & {str(key) for key in credentials})
    if secret_names:
        message = f"{', '.join(secret_names)} must not be in the definition of a datastore"
        raise InvalidInput.at("/credentials", message, _IN_A_FILE)
    if set(credentials) != {"secret"}:
        raise InvalidInput.at("/credentials", "must have the field `secret`, and nothing else", _IN_A_FILE)
    file = credentials["secret"]
    if not isinstance(file, str) or len(file) > 255 or not re.fullmatch(SECRET_PATTERN, file):
        message = "must be the name of a file, of letters, digits and . _ - with '/' between folders"
        raise InvalidInput.at("/credentials/secret", message, _IN_A_FILE)


def datastore_catalog(root: Path) -> DatastoreCatalog:
    """Returns the datastores below a cluster's root folder."""
    return Definitions(
        FileStore(root, _FOLDER, max_bytes=_MAX_BYTES),
        FieldsCodec(
            definition_fields, lambda fields: ANY.validate_json(json.dumps(fields)), repair_hint="define it again"
        ),
        noun="datastore",
        create_hint="define one with `parallelrun datastore create -f FILE` (docs/storage.md)",
    )
