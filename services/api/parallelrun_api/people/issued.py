"""Tokens that the server has made, each with a name: stored as hashes, so nobody can read one where they are stored.

A document for each below the root folder, sealed with a key that is not there: code of jobs may write to that folder,
and could let itself in otherwise.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from parallelrun_api.people.person import ONLY_ONE, SCOPES, Scope
from parallelrun_core.documents.codecs import FieldsCodec
from parallelrun_core.documents.collection import Definitions
from parallelrun_core.documents.file_store import FileStore
from parallelrun_core.errors import Conflict, CorruptLog, InvalidInput, NewerSchema, NotFound
from parallelrun_core.names.patterns import OWNER_NAME, in_words
from parallelrun_core.service import telemetry

log = telemetry.logger()

PREFIX: Final = "prt_"
"""The beginning of each token, by which scanners of published code find one."""
_FOLDER: Final = "tokens"
_MAX_BYTES: Final = 1 << 16
_CHECK_EVERY_S: Final = 1.0
_READ_EVERY_S: Final = 30.0
_SETTLED_NS: Final = 2_000_000_000
"""A folder that was changed more recently may change again without another time of its change."""
_DAY_S: Final = 86_400.0
_NAME: Final = re.compile(OWNER_NAME)


@dataclass(frozen=True, kw_only=True)
class IssuedToken:
    """A token, without its text."""

    name: str
    sha256: str
    scopes: tuple[Scope, ...]
    created: float
    """Epoch seconds."""
    created_by: str = ""
    expires: float = 0.0
    """Epoch seconds; 0: never."""

    def is_valid(self, now: float) -> bool:
        return not self.expires or now < self.expires


class IssuedTokens:
    """The tokens below a root folder as they are now, or were a second ago. Safe to share between threads.

    One that can't be read, or was not sealed with the key, is logged, and lets nobody in.

    Args:
        key: seals each document. It is in no folder that workers see.
    """

    def __init__(self, root: Path, key: bytes) -> None:
        self._folder: Final = root / _FOLDER
        self._key: Final = hmac.digest(key, b"parallelrun tokens", "sha256")
        codec = FieldsCodec(asdict, _token, self._key, repair_hint="make it again with `parallelrun token create`")
        self._documents: Final = Definitions(
            FileStore(root, _FOLDER, max_bytes=_MAX_BYTES, follows_links=False),
            codec,
            noun="token",
            create_hint="make one with `parallelrun token create NAME`",
            is_name=_NAME.fullmatch,
        )
        self._by_name: dict[str, IssuedToken] = {}
        self._by_hash: dict[str, IssuedToken] = {}
        self._state = -1
        self._check_at = 0.0
        self._read_at = 0.0

    def create(
        self, name: str, scopes: tuple[Scope, ...], *, created_by: str = "", days: float = 0.0, replaces: bool = False
    ) -> tuple[IssuedToken, str]:
        """Make a token, durably; returns it, and its text, which is shown this once.

        Args:
            days: how long it is valid; 0: until it is revoked.
            replaces: in place of the token of this name, which is not valid any more then.

        Raises:
            InvalidInput: it can't have this name.
            Conflict: there is one of this name.
        """
        if not _NAME.fullmatch(name) or name == ONLY_ONE:
            hint = f"{in_words(OWNER_NAME)}; not {ONLY_ONE!r}"
            raise InvalidInput.at("/name", f"{name[:80]!r} is not the name of a token", hint)
        text = f"{PREFIX}{secrets.token_urlsafe(32)}"
        now = time.time()
        token = IssuedToken(
            name=name,
            sha256=_hash(text.encode()),
            scopes=tuple(scope for scope in SCOPES if scope in scopes),
            created=now,
            created_by=created_by,
            expires=now + days * _DAY_S if days else 0.0,
        )
        if replaces:
            self._documents.put(name, token)
        elif not self._documents.put_if_absent(name, token):
            raise Conflict(f"There is a token {name!r} already: revoke it, or replace it with `--replace`.")
        self._refresh()
        return token, text

    def revoke(self, name: str) -> None:
        """Let nobody in with the token of this name any more. Raises NotFound."""
        if not _NAME.fullmatch(name):
            raise self._documents.not_found(name)
        self._documents.remove(name)
        self._refresh()

    def all(self) -> list[IssuedToken]:
        """All tokens by name, also those that have expired."""
        self._refresh()
        return [self._by_name[name] for name in sorted(self._by_name)]

    @property
    def has_any(self) -> bool:
        self._refresh_if_due()
        return bool(self._by_name)

    def named(self, name: str) -> IssuedToken | None:
        """The token of this name, if it is valid."""
        self._refresh_if_due()
        token = self._by_name.get(name)
        return token if token is not None and token.is_valid(time.time()) else None

    def of_text(self, presented: bytes) -> IssuedToken | None:
        """The token with this text, if it is valid."""
        if not presented.startswith(PREFIX.encode()):
            return None
        self._refresh_if_due()
        token = self._by_hash.get(_hash(presented))
        return token if token is not None and token.is_valid(time.time()) else None

    def secret_of(self, name: str) -> bytes | None:
        """A secret that ends with the token of this name, to sign with; it can't be derived from what is stored."""
        token = self.named(name)
        return hmac.digest(self._key, token.sha256.encode(), "sha256") if token is not None else None

    def _refresh_if_due(self) -> None:
        now = time.monotonic()
        if now < self._check_at:
            return
        self._check_at = now + _CHECK_EVERY_S
        if self._folder_state() != self._state or now >= self._read_at:
            self._refresh()

    def _folder_state(self) -> int:
        """Return what changes whenever a document is written or removed; -1: it may have changed unnoticed."""
        try:
            changed = os.stat(self._folder).st_mtime_ns
        except FileNotFoundError:
            return 0
        return changed if time.time_ns() - changed > _SETTLED_NS else -1

    def _refresh(self) -> None:
        state = self._folder_state()
        tokens: dict[str, IssuedToken] = {}
        for name in self._documents.names():
            try:
                token = self._documents.get(name)
            except NotFound:
                continue
            except (CorruptLog, NewerSchema, OSError) as error:
                log.error("token_unreadable", name=name, error=str(error))
                continue
            if token.name == name:
                tokens[name] = token
        self._by_name, self._by_hash = tokens, {token.sha256: token for token in tokens.values()}
        self._state = state
        self._read_at = time.monotonic() + _READ_EVERY_S


def _token(fields: dict[str, Any]) -> IssuedToken:
    scopes = tuple(scope for scope in SCOPES if scope in fields["scopes"])
    return IssuedToken(**{**fields, "scopes": scopes})


def _hash(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
