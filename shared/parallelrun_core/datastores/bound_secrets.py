"""The buckets and containers that secrets of datastores are bound to.

Whoever may define a datastore may name any secret in it, and would have it sent to a server of their choice. So a
secret belongs to the bucket, and the server, of the datastore that has named it first, for good; a copy of the file
under another name can be used for another bucket.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import msgspec

from parallelrun_core.datastores.definition import Datastore
from parallelrun_core.datastores.document import datastore_catalog
from parallelrun_core.documents.codecs import RecordCodec
from parallelrun_core.documents.collection import Documents
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.errors import CorruptLog, InvalidInput, NewerSchema, NotFound

_FOLDER: Final = "datastore-secrets"
_MAX_BYTES: Final = 1 << 20


class Binding(msgspec.Struct, frozen=True):
    """A secret, and the buckets or containers that it may be sent to."""

    secret: str
    places: tuple[str, ...]
    """Several only where several datastores had named it before there were bindings."""


class BoundSecrets:
    """The bindings below a cluster's root folder, durable. Safe to share between threads and processes.

    Args:
        root: the cluster's root folder.
    """

    def __init__(self, root: Path) -> None:
        self._catalog = datastore_catalog(root)
        self._bindings = Documents(
            FileStore(root, _FOLDER, max_bytes=_MAX_BYTES, follows_links=False),
            RecordCodec(Binding),
            noun="binding of a secret",
        )

    def check(self, datastore: Datastore) -> None:
        """Make sure that the secret of a datastore is for the datastore's bucket; one that is not bound yet is bound
        to it now, or to those of the datastores that already name it.

        Raises:
            InvalidInput: it is for another bucket.
            CorruptLog, NewerSchema, OSError: nobody can tell what it is for.
        """
        if datastore.credentials is None or datastore.anonymous:
            return
        secret = datastore.credentials.secret
        name = hashlib.sha256(secret.encode()).hexdigest()  # one name, whatever folders the secret is in
        binding = self._bindings.find(name)
        if binding is None:
            places = self._places_of(secret) or {datastore.place}
            self._bindings.put_if_absent(name, Binding(secret, tuple(sorted(places))))
            binding = self._bindings.get(name)
        if datastore.place not in binding.places:
            raise InvalidInput.at(
                "/credentials/secret",
                f"the secret {secret!r} is for {', '.join(binding.places)} and is not sent to {datastore.place}",
                "put a copy of the file under another name into the folder of secrets, and name that (docs/storage.md)",
            )

    def _places_of(self, secret: str) -> set[str]:
        """The buckets of all datastores that name a secret now."""
        places = set[str]()
        for name in self._catalog.names():
            try:
                datastore = self._catalog.get(name)
            except (CorruptLog, NewerSchema, NotFound):
                continue
            if datastore.credentials is not None and datastore.credentials.secret == secret:
                places.add(datastore.place)
        return places
