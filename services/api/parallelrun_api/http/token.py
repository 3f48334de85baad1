"""The tokens that clients must present: what is set, or one of this server's own.

Its own is in the folder of the user's state and never in the root folder, which workers see, too: whoever can read the
token can submit jobs, cancel those of others and fetch their outputs.
"""

from __future__ import annotations

import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from parallelrun_api.http.named_tokens import NamedTokens
from parallelrun_api.people.issued import IssuedTokens
from parallelrun_api.people.oidc import Oidc, provider_of
from parallelrun_api.people.person import ONLY_ONE, Person
from parallelrun_api.people.proxies import Proxies
from parallelrun_api.settings import ApiSettings
from parallelrun_core.durable_files import write_once
from parallelrun_core.service import telemetry
from parallelrun_core.service.state_folder import state_folder

log = telemetry.logger()

_NAME: Final = "token"
_OF_OTHERS: Final = 0o077


class Token(NamedTuple):
    """The token that clients must present."""

    text: str = ""
    """Empty: nothing, or one of those that have a name."""
    file: str = ""
    """The file where it was read; empty if it was given by itself."""
    named: NamedTokens | None = None
    """Others, each with a name."""
    issued: IssuedTokens | None = None
    """Tokens that this server has made; None: it can't make any."""
    proxies: Proxies | None = None
    """The proxies whose word about people counts."""
    oidc: Oidc | None = None
    """The OpenID Connect provider whose tokens count, too."""
    sees_all: bool = True
    """False where people see only what is their own."""

    @property
    def is_needed(self) -> bool:
        """Return whether clients must present one at all."""
        return bool(self.text) or self.named is not None

    def name_of(self, presented: bytes) -> str:
        """The name of a token that a client presents; empty: it is none."""
        if self.text and hmac.compare_digest(presented, self.text.encode()):
            return ONLY_ONE
        if self.named is not None and (name := self.named.name_of(presented)):
            return name
        token = self.issued.of_text(presented) if self.issued is not None else None
        return token.name if token is not None else ""

    def person_of(self, name: str) -> Person:
        """The person who has the token of this name. Those that are set, or in a file, have all scopes."""
        if not self.is_needed or name == ONLY_ONE or (self.named is not None and self.named.token_of(name)):
            return Person(name)
        token = self.issued.named(name) if self.issued is not None else None
        if token is None:
            return Person(name, frozenset(), sees_all=False)
        return Person(name, frozenset(token.scopes), self.sees_all, is_operator="admin" in token.scopes)

    def person_from_proxy(self, name: str) -> Person:
        """The person whom a proxy has named: with the scopes of their token if they have one, else they may submit."""
        person = self.person_of(name)
        return person if person.scopes else Person(name, frozenset({"read", "submit"}), self.sees_all)

    def secret_of(self, name: str) -> bytes | None:
        """The token of this name; None: there is none. Where none is needed, the empty name has an empty one."""
        if not self.is_needed:
            return None if name else b""
        if name == ONLY_ONE:
            return self.text.encode() or None
        if self.named is not None and (token := self.named.token_of(name)):
            return token
        return self.issued.secret_of(name) if self.issued is not None else None

    @property
    def has_people(self) -> bool:
        """Return whether several people may use this server, each with a token of their own."""
        has_others = self.named is not None or self.proxies is not None or self.oidc is not None
        return has_others or (self.issued is not None and self.issued.has_any)


def load_token(settings: ApiSettings) -> Token:
    """Return what clients must present; nothing only if the settings say so.

    If no token is set, a random one is created, in the file `token` of `state_folder()`, which only its own user can
    read. It stays the same when the server is started again. One that an earlier release has left in the root folder is
    removed, because whoever ran code there may know it.

    Raises:
        OSError: a file can't be read or created.
        ValueError: a file has no token, or others can read it; or the settings contradict each other.
    """
    token = _load(settings)
    _remove_old(settings.root / _NAME, token.file, str(settings.tokens_file or ""))
    key = settings.sealing_key or token.text.encode()
    issued = IssuedTokens(settings.root, key) if key and token.is_needed else None
    proxies = Proxies.parse(settings.trusted_proxies, settings.proxy_user_header) if token.is_needed else None
    sees_all = settings.visibility == "all"
    provider = provider_of(settings) if token.is_needed else None
    oidc = Oidc(provider, sees_all) if provider is not None else None
    return token._replace(issued=issued, proxies=proxies, oidc=oidc, sees_all=sees_all)


def _load(settings: ApiSettings) -> Token:
    setting = settings.token.get_secret_value()
    if settings.insecure:
        _check_insecure(settings)
        return Token()
    for path in filter(None, (settings.token_file, settings.tokens_file)):
        if path.absolute().is_relative_to(settings.root):
            log.warning("token_in_root", token_file=str(path), hint="workers can read it there")
    named = NamedTokens(settings.tokens_file) if settings.tokens_file is not None else None
    if setting:
        return Token(setting, named=named)
    if settings.token_file is not None:
        return Token(_read(settings.token_file), str(settings.token_file), named)
    if named is not None:
        return Token(named=named)
    try:
        path = state_folder() / _NAME
    except RuntimeError as error:
        raise ValueError(f"there is no place for a token: {error}; set --token-file, or XDG_STATE_HOME") from error
    _create(path)
    _check_private(path)
    return Token(_read(path), str(path))


def _check_insecure(settings: ApiSettings) -> None:
    if not settings.is_loopback:
        raise ValueError(f"--insecure is refused for {settings.host}: others could run code here; leave it out")
    if settings.token.get_secret_value() or settings.token_file is not None or settings.tokens_file is not None:
        raise ValueError("--insecure and a token contradict each other: leave one of them out")


def _read(path: Path) -> str:
    token = path.read_text().strip()
    if not token or any(not 33 <= ord(char) <= 126 for char in token):
        raise ValueError(f"{path} has no token: it must be one line of visible ASCII characters")
    return token


def _create(path: Path) -> None:
    """Write a random token, whole or not at all; an existing one is left alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not path.exists():
        with suppress(FileExistsError):  # another API of this user was faster; both use that one
            write_once(path, f"{secrets.token_urlsafe(32)}\n".encode(), mode=0o600)


def _check_private(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise ValueError(f"{path} is not a file of this user: remove it, and a new token is created")
    if status.st_mode & _OF_OTHERS:
        raise ValueError(f"others can read {path}: remove it, and a new token is created")


def _remove_old(path: Path, *used: str) -> None:
    """Remove the token of an earlier release, unless the settings name it."""
    if path in {Path(each).absolute() for each in used if each} or not path.is_file():
        return
    path.unlink(missing_ok=True)
    log.warning("old_token_removed", file=str(path), hint="workers could read it there; it is no longer valid")
