"""People who sign in with tokens of an OpenID Connect provider: who gets in, as whom, and who doesn't."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import httpx
import pytest

from parallelrun_api.people.oidc import Oidc, Provider, fetch_json, provider_of
from parallelrun_api.settings import ApiSettings
from parallelrun_core.errors import Unauthorized, Unavailable
from tests.integration.api.conftest import Site
from tests.integration.api.server import ApiServer
from tests.integration.api.test_people import accepted
from tests.oidc_server import AUDIENCE, OidcServer

pytestmark = pytest.mark.integration

OPERATOR = "of-the.operator.himself"


@pytest.fixture
def provider() -> Iterator[OidcServer]:
    with OidcServer() as server:
        yield server


def oidc_of(provider: OidcServer, **more: Any) -> Oidc:
    return Oidc(Provider(issuer=provider.issuer, audience=AUDIENCE, **more))


def admitted(oidc: Oidc, token: str) -> str:
    return oidc.person_of(token.encode()).name


def unsigned(provider: OidcServer) -> str:
    """A token of the algorithm `none`, which names a key of the provider."""
    parts = ({"alg": "none", "typ": "JWT", "kid": "first"}, {
        "iss": provider.issuer, "aud": AUDIENCE, "sub": "x", "exp": time.time() + 300, "preferred_username": "anna",
    })  # fmt: skip
    return ".".join(base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode() for each in parts) + "."


def test_a_person_is_who_the_token_says_and_may_what_their_groups_may(provider: OidcServer) -> None:
    oidc = oidc_of(provider, admins=frozenset({"ops"}), submitters=frozenset({"ml"}), readers=frozenset({"all"}))
    people = {
        groups: oidc.person_of(provider.token("anna", groups=list(groups)).encode())
        for groups in (("ops",), ("ml", "all"), ("all",))
    }
    assert {groups: sorted(person.scopes) for groups, person in people.items()} == {
        ("ops",): ["admin", "read", "submit"], ("ml", "all"): ["read", "submit"], ("all",): ["read"],
    }  # fmt: skip
    assert {person.owner for person in people.values()} == {"anna"}
    assert [person.is_operator for person in people.values()] == [True, False, False]
    with pytest.raises(Unauthorized, match="in no group"):
        admitted(oidc, provider.token("anna", groups=["guests"]))
    everybody = oidc_of(provider, name_claim="email", groups_claim="roles")
    assert everybody.person_of(provider.token(email="bert@example.com").encode()).scopes == {"read", "submit"}


@pytest.mark.parametrize("claims, words", [
    ({"exp": time.time() - 3600}, "expired"),
    ({"nbf": time.time() + 3600}, "not yet valid"),
    ({"aud": "another server"}, "[Aa]udience"),
    ({"iss": "https://evil.example"}, "[Ii]ssuer"),
    ({"exp": None}, "exp"),
    ({"aud": None}, "aud"),
    ({"sub": None}, "sub"),
    ({"preferred_username": None}, "preferred_username"),
    ({"preferred_username": "default"}, "preferred_username"),
    ({"preferred_username": "anna/../root"}, "preferred_username"),
    ({"preferred_username": ["anna"]}, "preferred_username"),
])  # fmt: skip
def test_a_token_that_is_not_for_this_server_and_now_is_refused(
    provider: OidcServer, claims: dict[str, Any], words: str
) -> None:
    with pytest.raises(Unauthorized, match=words):
        admitted(oidc_of(provider), provider.token(**claims))


def test_only_what_the_provider_has_signed_with_a_key_of_its_own_counts(provider: OidcServer) -> None:
    oidc = oidc_of(provider)
    assert admitted(oidc, provider.token()) == "anna"
    with OidcServer() as other:
        forged = other.token(iss=provider.issuer)  # names the same key
    hmac_of_public_key = _signed_with(provider.public_pem, provider)
    header, payload, signature = provider.token().split(".")
    changed = payload[:-6] + ("A" if payload[-6] != "A" else "B") + payload[-5:]
    for token in (forged, unsigned(provider), hmac_of_public_key, f"{header}.{changed}.{signature}", f"{header}.x.y"):
        with pytest.raises(Unauthorized):
            admitted(oidc, token)


def test_a_token_that_names_or_brings_a_key_of_its_own_is_refused(provider: OidcServer) -> None:
    oidc = oidc_of(provider)
    assert admitted(oidc, provider.token()) == "anna"
    with OidcServer() as evil:
        forged = evil.token(iss=provider.issuer)
        head, payload, _ = forged.split(".")
        own = json.loads(base64.urlsafe_b64decode(head + "=="))
        published = fetch_json(f"{evil.issuer}/keys")["keys"][0]
        for names in (
            {"jku": f"{evil.issuer}/keys"}, {"x5u": f"{evil.issuer}/keys"}, {"jwk": published}, {"x5c": ["MIIB"]},
            {"kid": f"{evil.issuer}/keys"}, {"kid": "../../dev/null"}, {"kid": ""}, {"kid": None}, {"kid": 7},
            {"crit": ["exp"]}, {"b64": False, "crit": ["b64"]},
        ):  # fmt: skip
            evil_token = evil.signed({**own, **names}, payload)
            with pytest.raises(Unauthorized):
                admitted(oidc, evil_token)
        assert evil.asked == ["/keys"], "nobody but the test has asked for its keys"


def test_a_secret_that_is_published_by_mistake_signs_nothing() -> None:
    check_published_secret()


def check_published_secret() -> None:
    """Sign with what a provider has published beside its keys."""
    secret = b"a-secret-of-thirty-two-characters"
    shared = {"kty": "oct", "kid": "shared", "alg": "HS256", "k": base64.urlsafe_b64encode(secret).decode().rstrip("=")}
    with OidcServer() as provider:
        published = fetch_json(f"{provider.issuer}/keys")["keys"]
        oidc = oidc_of(provider)
        oidc.fetch = lambda url: {"keys": [*published, shared]} if url.endswith("/keys") else fetch_json(url)
        assert admitted(oidc, provider.token()) == "anna"
        assert "shared" not in oidc._keys


def _signed_with(secret: bytes, provider: OidcServer) -> str:
    """A token of HS256 whose secret is the public key, which libraries once took for the provider's."""
    import hashlib
    import hmac

    header, payload, _ = provider.token().split(".")
    parts = json.loads(base64.urlsafe_b64decode(header + "=="))
    head = base64.urlsafe_b64encode(json.dumps({**parts, "alg": "HS256"}).encode()).rstrip(b"=").decode()
    mac = hmac.digest(secret, f"{head}.{payload}".encode(), hashlib.sha256)
    return f"{head}.{payload}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


def test_keys_are_exchanged_and_an_unknown_one_costs_few_requests(provider: OidcServer) -> None:
    now = 1000.0
    oidc = Oidc(Provider(issuer=provider.issuer, audience=AUDIENCE), clock=lambda: now)
    old = provider.token()
    assert admitted(oidc, old) == "anna"
    provider.rotate("second", is_elliptic=True)
    now += 11
    assert admitted(oidc, provider.token("bert")) == "bert"
    with pytest.raises(Unauthorized, match="does not publish"):
        admitted(oidc, old)
    asked = len(provider.asked)
    for number in range(50):
        with pytest.raises(Unauthorized, match="does not publish"):
            admitted(oidc, provider.token(key_id=f"made-up-{number}"))
    assert len(provider.asked) == asked
    provider.is_down = True
    now += 3601
    assert admitted(oidc, provider.token("bert")) == "bert", "what was fetched before goes on to be valid"


def test_nobody_whose_key_is_known_waits_for_a_provider_that_does_not_answer(provider: OidcServer) -> None:
    check_slow_provider(provider)


def check_slow_provider(provider: OidcServer) -> None:
    """Somebody makes up ids of keys, so that they are fetched, while the provider is slow."""
    now, is_asked, answers = 1000.0, threading.Event(), threading.Event()
    answers.set()

    def fetch(url: str) -> Mapping[str, Any]:
        is_asked.set()
        answers.wait()
        return fetch_json(url)

    oidc = Oidc(Provider(issuer=provider.issuer, audience=AUDIENCE), clock=lambda: now, fetch=fetch)
    token, made_up = provider.token(), provider.token(key_id="made-up")
    assert admitted(oidc, token) == "anna"
    now += 11
    is_asked.clear()
    answers.clear()
    with ThreadPoolExecutor(3) as others:
        try:
            waiting = others.submit(admitted, oidc, made_up)
            assert is_asked.wait(60)
            known, second = others.submit(admitted, oidc, token), others.submit(admitted, oidc, made_up)
            assert not wait([known, second], timeout=20).not_done, "somebody else waits for the provider"
            assert known.result() == "anna"
            assert isinstance(second.exception(), Unavailable)
            assert not waiting.done()
        finally:
            answers.set()


def test_a_provider_that_is_away_is_no_refusal(provider: OidcServer) -> None:
    provider.is_down = True
    oidc = oidc_of(provider)
    for _ in range(2):
        with pytest.raises(Unavailable):
            admitted(oidc, provider.token())


@pytest.mark.parametrize("settings, words", [
    ({"oidc_issuer": "https://id.example"}, "--oidc-audience"),
    ({"oidc_issuer": "http://id.example", "oidc_audience": "x"}, "no https: URL"),
])  # fmt: skip
def test_settings_that_would_let_anybody_in_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        provider_of(ApiSettings(**settings))


def test_over_http_people_own_what_they_make_and_own_tokens_go_on(
    provider: OidcServer, redis_url: str, tmp_path: Path, site: Site
) -> None:
    flags = ("--oidc-issuer", provider.issuer, "--oidc-audience", AUDIENCE, "--oidc-admins", "ops")
    with ApiServer(tmp_path / "root", redis_url, "--token", OPERATOR, *flags, insecure=False) as server:

        def client(token: str) -> httpx.Client:
            return server.client(headers={"Authorization": f"Bearer {token}"})

        with client(provider.token("anna")) as anna, client(provider.token("olga", groups=["ops"])) as olga:
            job = accepted(anna.post("/v1/jobs", json=site.spec()))
            assert job["owner"] == "anna"
            assert anna.put("/v1/tokens/eve", json={"scopes": ["admin"]}).status_code == 403
            made = accepted(olga.put("/v1/tokens/dashboard", json={"scopes": ["read"]}))
            accepted(olga.post(f"/v1/jobs/{job['id']}:cancel"))
        with client(OPERATOR) as operator, client(made["token"]) as dashboard:
            assert accepted(operator.get("/v1/jobs"))["items"], "a token of the server that looks like a JWT"
            assert accepted(dashboard.get("/v1/jobs"))["items"]
        with client(provider.token(exp=time.time() - 3600)) as late:
            refused = late.get("/v1/jobs")
            assert (refused.status_code, refused.json()["code"]) == (401, "unauthorized")
            assert "expired" in refused.json()["detail"]
        with server.client() as browser:
            signed_in = browser.post("/v1/session", json={"token": provider.token()})
            assert signed_in.status_code == 401
            assert "behind a proxy" in signed_in.json()["detail"]
