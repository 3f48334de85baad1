"""A small OpenID Connect provider: it publishes its keys, gives tokens, and exchanges its keys when a test says so."""

from __future__ import annotations

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

AUDIENCE = "parallelrun"


class OidcServer:
    """Use it in a `with` statement. `asked` has the paths of all requests."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.is_down = False
        self._keys: dict[str, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.rotate("first")

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def rotate(self, key_id: str, *, is_elliptic: bool = False) -> None:
        """Sign with a new key from now on; the earlier ones are no longer published."""
        rsa_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._keys = {key_id: ec.generate_private_key(ec.SECP256R1()) if is_elliptic else rsa_key}

    @property
    def public_pem(self) -> bytes:
        """The public key, which an attacker knows as well."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        [key] = self._keys.values()
        return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def token(
        self, name: str = "anna", *, key_id: str = "", algorithm: str = "", key: Any = None, **claims: Any
    ) -> str:
        """A token of a person; a claim that is None is left out."""
        [(own_id, own_key)] = self._keys.items()
        now = time.time()
        plain = {
            "iss": self.issuer, "aud": AUDIENCE, "sub": f"id-of-{name}", "iat": now, "exp": now + 300,
            "preferred_username": name,
        }  # fmt: skip
        payload = {each: value for each, value in (plain | claims).items() if value is not None}
        by_default = "ES256" if isinstance(own_key, ec.EllipticCurvePrivateKey) else "RS256"
        return jwt.encode(payload, own_key, by_default, headers={"kid": key_id or own_id})

    def signed(self, header: dict[str, Any], payload: str) -> str:
        """A token with this header and payload (base64), signed with the own key."""
        [key] = self._keys.values()
        text = f"{base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b'=').decode()}.{payload}"
        signature = RSAAlgorithm(RSAAlgorithm.SHA256).sign(text.encode(), cast("rsa.RSAPrivateKey", key))
        return f"{text}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"

    def _document(self, path: str) -> dict[str, Any] | None:
        if path == "/.well-known/openid-configuration":
            return {"issuer": self.issuer, "jwks_uri": f"{self.issuer}/keys"}
        return {"keys": [_published(key_id, key) for key_id, key in self._keys.items()]} if path == "/keys" else None

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked.append(self.path)
                document = None if provider.is_down else provider._document(self.path)
                body = json.dumps(document).encode()
                self.send_response(404 if document is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _published(key_id: str, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    if isinstance(key, rsa.RSAPrivateKey):
        described = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    else:
        described = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**described, "kid": key_id, "use": "sig"}
