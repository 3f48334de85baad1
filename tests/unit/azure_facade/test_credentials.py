"""Tokens and signatures: what they were made for, and nothing else."""

import base64
import json
from urllib.parse import parse_qsl

import pytest

from parallelrun_api.azure import credentials

SECRET = b"the-api-token-of-somebody"
ML = "https://ml.azure.com"
NOW = 1_800_000_000.0


def is_valid(token: str, *, secret: bytes = SECRET, audience: str = ML, now: float = NOW) -> bool:
    return credentials.is_valid(token, secret, frozenset({audience}), now=now)


def test_a_token_names_whose_it_is_and_holds_no_secret() -> None:
    token, ends = credentials.new_token(SECRET, "alice", ML, now=NOW)

    assert credentials.named_in(token) == "alice"
    assert ends == NOW + credentials.TOKEN_S
    parts = [base64.urlsafe_b64decode(part + "==") for part in token.split(".")[:2]]
    assert SECRET not in b"".join(parts)


def test_a_token_is_for_its_audience_and_its_time() -> None:
    token, ends = credentials.new_token(SECRET, "alice", ML, now=NOW)

    assert is_valid(token)
    assert not is_valid(token, audience="https://storage.azure.com")
    assert not is_valid(token, secret=b"another")
    assert not is_valid(token, now=ends + 61)


@pytest.mark.parametrize(
    "change",
    [
        lambda head, claims, mac: (head, {**claims, "name": "bob"}, mac),
        lambda head, claims, mac: (head, {**claims, "exp": claims["exp"] + 10_000}, mac),
        lambda head, claims, mac: ({**head, "alg": "none"}, claims, ""),
        lambda head, claims, mac: (head, claims, ""),
    ],
)
def test_a_changed_token_is_none(change: object) -> None:
    token, _ = credentials.new_token(SECRET, "alice", ML, now=NOW)
    head, claims, mac = token.split(".")
    head, claims, mac = change(*(json.loads(base64.urlsafe_b64decode(each + "==")) for each in (head, claims)), mac)  # type: ignore[operator]
    packed = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in (head, claims)]

    assert not is_valid(".".join([*packed, mac]))


@pytest.mark.parametrize("text", ["", "x", "a.b.c", ".".join(["[" * 3000] * 3), "ä.ä.ä", "e30.bnVsbA.x", "x" * 10_000])
def test_what_is_no_token_names_nobody(text: str) -> None:
    assert credentials.named_in(text) == ""
    assert not is_valid(text)


def test_a_deep_claim_is_no_claim() -> None:
    deep = base64.urlsafe_b64encode(b"[" * 2900).decode().rstrip("=")

    assert credentials.named_in(f"e30.{deep}.x") == ""


def signature(rights: str = "r", container: str = "uploads") -> dict[str, str]:
    return dict(parse_qsl(credentials.new_signature(SECRET, "alice", container, rights, now=NOW)))


def allows(query: dict[str, str], container: str = "uploads", right: str = "r", now: float = NOW) -> bool:
    return credentials.allows(query, SECRET, container, right, now=now)


def test_a_signature_is_for_one_container_one_right_and_a_time() -> None:
    assert allows(signature())
    assert allows(signature("rw"), right="w")
    assert not allows(signature(), right="w")
    assert not allows(signature(), container="others")
    assert not allows(signature(), now=NOW + credentials.SIGNATURE_S + 1)
    assert not credentials.allows(signature(), b"another", "uploads", "r", now=NOW)


@pytest.mark.parametrize("field, value", [("sp", "rw"), ("se", "99999999999"), ("si", "others"), ("skoid", "bob")])
def test_no_field_of_a_signature_can_be_changed(field: str, value: str) -> None:
    query = {**signature(), field: value}

    assert not allows(query, container=query["si"], right="r")


def test_a_token_is_no_signature_and_the_other_way_round() -> None:
    token, _ = credentials.new_token(SECRET, "alice", ML, now=NOW)

    assert not allows({**signature(), "sig": token.rpartition(".")[2]})
