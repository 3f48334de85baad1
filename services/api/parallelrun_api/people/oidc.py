"""Sign-in with the tokens (JWT, RFC 7519) of an OpenID Connect provider.

A token counts if the provider has signed it with a key that it publishes, for this server, and it has not expired. Only
asymmetric algorithms do, so neither `none` nor one that a public key could be mistaken for the secret of. A key that
isn't known yet has the keys fetched again, as providers rotate them, but not more often than every ten seconds.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from parallelrun_api.people.person import ONLY_ONE, Person, Scope
from parallelrun_core.errors import Unauthorized, Unavailable
from parallelrun_core.names.patterns import OWNER_NAME, in_words
from parallelrun_core.service import telemetry

if TYPE_CHECKING:
    import jwt

    from parallelrun_api.settings import ApiSettings

log = telemetry.logger()

_ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
)  # fmt: skip
_REQUIRED: Final = ("exp", "iss", "aud", "sub")
_LEEWAY_S: Final = 30.0
"""How far the clocks of provider and server may differ."""
_TIMEOUT_S: Final = 5.0
_MOST_BYTES: Final = 1 << 20
_REFETCH_S: Final = 10.0
_KEPT_S: Final = 3600.0
_NAME: Final = re.compile(OWNER_NAME)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, kw_only=True)
class Provider:
    """An OpenID Connect provider, and what the claims of its tokens mean here.

    Args:
        issuer: its URL, as in the claim `iss`.
        audience: the name of this server, as in the claim `aud`.
        keys_url: where it publishes its keys; empty: it says so in its `/.well-known/openid-configuration`.
        name_claim: the claim with the person's name, the owner of what they make.
        groups_claim: the claim with their groups or roles.
        admins, submitters, readers: groups that have a scope; where none is named, everybody may submit.
    """

    issuer: str
    audience: str
    keys_url: str = ""
    name_claim: str = "preferred_username"
    groups_claim: str = "groups"
    admins: frozenset[str] = frozenset()
    submitters: frozenset[str] = frozenset()
    readers: frozenset[str] = frozenset()

    def scopes_of(self, groups: frozenset[str]) -> frozenset[Scope]:
        """Return the scopes of a person in these groups; none: they may not use this server."""
        if groups & self.admins:
            return frozenset({"read", "submit", "admin"})
        if groups & self.submitters or not (self.submitters or self.readers):
            return frozenset({"read", "submit"})
        return frozenset({"read"}) if groups & self.readers else frozenset()


@dataclass(slots=True)
class Oidc:
    """Admits people by tokens of one provider. Safe to share between threads.

    Args:
        fetch: gets a JSON document by its URL; raises OSError, ValueError.
        clock: monotonic seconds.
    """

    provider: Provider
    sees_all: bool = True
    fetch: Callable[[str], Mapping[str, Any]] = field(default_factory=lambda: fetch_json)
    clock: Callable[[], float] = time.monotonic
    _keys: dict[str, jwt.PyJWK] = field(default_factory=dict)
    _fetched_at: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def person_of(self, presented: bytes) -> Person:
        """Return the person who has this token.

        Raises:
            Unauthorized: it is not valid, says no name that an owner can have, or they may not use this server.
            Unavailable: the provider's keys can't be had now.
        """
        import jwt

        try:
            key_id = str(jwt.get_unverified_header(presented).get("kid") or "")
            key = self._key(key_id)
            claims: dict[str, Any] = jwt.decode(
                presented,
                key,
                algorithms=list(_ALGORITHMS),
                audience=self.provider.audience,
                issuer=self.provider.issuer,
                leeway=_LEEWAY_S,
                options={"require": list(_REQUIRED)},
            )
        except jwt.InvalidTokenError as error:
            raise Unauthorized(f"The token of {self.provider.issuer} is not valid: {error}.") from error
        return self._person(claims)

    def _person(self, claims: Mapping[str, Any]) -> Person:
        name = claims.get(self.provider.name_claim)
        if not isinstance(name, str) or not _NAME.fullmatch(name) or name == ONLY_ONE:
            raise Unauthorized(
                f"The claim {self.provider.name_claim!r} of the token is no name that an owner can have: "
                f"{in_words(OWNER_NAME)}"
            )
        groups = claims.get(self.provider.groups_claim) or ()
        names = frozenset(groups.split() if isinstance(groups, str) else map(str, groups))
        scopes = self.provider.scopes_of(names)
        if not scopes:
            raise Unauthorized(f"{name} is in no group that may use this server: ask whoever runs it.")
        return Person(name, scopes, self.sees_all, is_operator="admin" in scopes)

    def _key(self, key_id: str) -> jwt.PyJWK:
        """Return the provider's key of this id.

        Anybody can make up an id, and a provider may take long to answer. So nobody whose key is known waits while keys
        are fetched, and one thread alone waits for the provider.

        Raises:
            Unauthorized: there is none.
            Unavailable: the keys can't be had now, or are being fetched.
        """
        if self._is_due(key_id) and self._lock.acquire(timeout=0 if self._keys else _TIMEOUT_S):
            try:
                if self._is_due(key_id):
                    self._refresh()
            finally:
                self._lock.release()
        if (key := self._keys.get(key_id)) is not None:
            return key
        if not self._keys or self._lock.locked():
            raise Unavailable(f"The keys of {self.provider.issuer} can't be had now. Try again soon.")
        raise Unauthorized(f"The token is signed with a key that {self.provider.issuer} does not publish.")

    def _is_due(self, key_id: str) -> bool:
        """Return whether the keys are to be fetched for a token with a key of this id."""
        age_s = self.clock() - self._fetched_at if self._fetched_at is not None else float("inf")
        return age_s >= _KEPT_S or (key_id not in self._keys and age_s >= _REFETCH_S)

    def _refresh(self) -> None:
        """Fetch the keys; if they can't be had, those that were fetched before go on to be valid."""
        import jwt

        try:
            configuration_url = f"{self.provider.issuer.rstrip('/')}/.well-known/openid-configuration"
            url = self.provider.keys_url or str(self.fetch(configuration_url)["jwks_uri"])
            _check_url(url)
            keys = jwt.PyJWKSet.from_dict(dict(self.fetch(url))).keys
            self._keys = {key.key_id or "": key for key in keys if _signs(key)}
        except (OSError, ValueError, KeyError, TypeError, jwt.PyJWTError) as error:
            log.warning("oidc_keys_unavailable", issuer=self.provider.issuer, error=str(error))
        finally:
            self._fetched_at = self.clock()


def _signs(key: jwt.PyJWK) -> bool:
    """Return whether a published key is for signatures, and for such as nobody but the provider can make: a secret that
    is published by mistake would let anybody in."""
    return key.public_key_use in (None, "sig") and key.algorithm_name in _ALGORITHMS


def fetch_json(url: str) -> Mapping[str, Any]:
    """Get a JSON document; no redirect is followed. Raises OSError, ValueError."""
    import httpx

    try:
        with httpx.stream("GET", url, timeout=_TIMEOUT_S, follow_redirects=False) as response:
            response.raise_for_status()
            body = b""
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > _MOST_BYTES:
                    raise ValueError(f"{url} is over {_MOST_BYTES:,} bytes")
            document = httpx.Response(200, content=body).json()
    except httpx.HTTPError as error:
        raise OSError(str(error)) from error
    if not isinstance(document, dict):
        raise ValueError(f"{url} is no JSON object")
    return document


def provider_of(settings: ApiSettings) -> Provider | None:
    """Return the provider that the settings name; None: they name none.

    Raises:
        ValueError: the settings contradict each other, or a library is missing.
    """
    if not settings.oidc_issuer:
        return None
    if not settings.oidc_audience:
        raise ValueError("--oidc-issuer needs --oidc-audience: a token for any other server would count here")
    _check_url(settings.oidc_issuer)
    try:
        import jwt  # noqa: F401 - most servers have no provider
    except ImportError as error:
        raise ValueError("--oidc-issuer needs `pip install 'parallelrun[oidc]'`") from error
    return Provider(
        issuer=settings.oidc_issuer,
        audience=settings.oidc_audience,
        keys_url=settings.oidc_keys_url,
        name_claim=settings.oidc_name_claim,
        groups_claim=settings.oidc_groups_claim,
        admins=_groups(settings.oidc_admins),
        submitters=_groups(settings.oidc_submitters),
        readers=_groups(settings.oidc_readers),
    )


def _check_url(url: str) -> None:
    """Refuse keys that anybody on the way could exchange. Raises ValueError."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOOPBACK):
        raise ValueError(f"{url!r} is no https: URL")


def _groups(text: str) -> frozenset[str]:
    return frozenset(each.strip() for each in text.split(",") if each.strip())
