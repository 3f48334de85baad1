"""Credentials of this facade, made of an API token for a time and a purpose, that clients show in its place.

Both kinds are signed with a key that is derived from the API token itself, so nothing needs to be remembered: any
server that knows the token can check them, and they end with it. Neither holds the token.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

MAX_CHARACTERS: Final = 4096
"""Of a token that is looked at at all."""
TOKEN_S: Final = 3600
SIGNATURE_S: Final = 8 * 3600
"""An upload may take a while."""
NAME: Final = "skoid"
"""The field of a signature with the name of the API token. The client passes on only fields that it knows."""
_ISSUER: Final = "parallelrun"
_HEAD: Final = {"alg": "HS256", "typ": "JWT"}
_LEEWAY_S: Final = 60
"""What clocks of two servers may differ by."""
_NOBODY: Final = "00000000-0000-0000-0000-000000000000"


def named_in(token: str) -> str:
    """The name of the API token that a token says it was made of; empty if it can't be read. Nothing is checked yet."""
    name = _claims(token).get("name")
    return name if isinstance(name, str) else ""


def new_token(secret: bytes, name: str, audience: str, *, now: float) -> tuple[str, int]:
    """A token of this form: header, claims and signature, as RFC 7519 has them; and when it ends.

    Args:
        secret: the API token.
        name: that token's.
    """
    ends = int(now) + TOKEN_S
    claims = {
        "aud": audience,
        "iss": _ISSUER,
        "iat": int(now),
        "nbf": int(now) - _LEEWAY_S,
        "exp": ends,
        "name": name,
        # The client looks for these.
        "oid": _NOBODY,
        "tid": _NOBODY,
        "sub": name,
    }
    signed = f"{_packed(_HEAD)}.{_packed(claims)}"
    return f"{signed}.{_base64(_mac(secret, 'token', signed))}", ends


def is_valid(token: str, secret: bytes, audiences: frozenset[str], *, now: float) -> bool:
    """Return whether this token was made of this secret, for one of these audiences, and has not ended."""
    signed, _, signature = token.rpartition(".")
    if not hmac.compare_digest(signature.encode(), _base64(_mac(secret, "token", signed)).encode()):
        return False
    claims = _claims(token)
    ends = claims.get("exp")
    return claims.get("aud") in audiences and isinstance(ends, int) and now < ends + _LEEWAY_S


def new_signature(secret: bytes, name: str, container: str, rights: str, *, now: float) -> str:
    """The query of an URL with which one container can be used, for a time.

    Args:
        rights: `r` to read and list, `w` to write.
    """
    ends = int(now) + SIGNATURE_S
    query = {"sv": "2024-11-04", "sr": "c", "sp": rights, "se": str(ends), NAME: name, "si": container}
    query["sig"] = _base64(_mac(secret, "container", _signed(query)))
    return "&".join(f"{key}={quote(value, safe='')}" for key, value in query.items())


def allows(query: Mapping[str, str], secret: bytes, container: str, right: str, *, now: float) -> bool:
    """Return whether the signature in this query allows to do this with this container."""
    mac = _base64(_mac(secret, "container", _signed(query)))
    if not hmac.compare_digest(query.get("sig", "").encode(), mac.encode()):
        return False
    ends = query.get("se", "")
    is_alive = ends.isascii() and ends.isdecimal() and len(ends) < 16 and now < int(ends)
    return is_alive and query.get("si") == container and right in query.get("sp", "")


def _signed(query: Mapping[str, str]) -> str:
    return json.dumps([query.get(key, "") for key in ("sv", "sr", "sp", "se", NAME, "si")])


def _mac(secret: bytes, purpose: str, text: str) -> bytes:
    key = hmac.digest(secret, f"parallelrun azure {purpose}".encode(), hashlib.sha256)
    return hmac.digest(key, text.encode(), hashlib.sha256)


def _packed(value: Mapping[str, Any]) -> str:
    return _base64(json.dumps(value).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _claims(token: str) -> dict[str, Any]:
    parts = token.split(".")
    if len(parts) != 3 or len(token) > MAX_CHARACTERS or not token.isascii():
        return {}
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}
