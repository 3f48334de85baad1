"""Tokens with names: what is one, and what becomes of them while their file changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from parallelrun_api.http.named_tokens import NamedTokens, parse

ANNA, BEN = "token-of-anna-0001", "token-of-ben-00001"


class Clock:
    """One that a test turns."""

    def __init__(self) -> None:
        self.now = 5.0

    def __call__(self) -> float:
        return self.now


def test_each_line_is_a_token() -> None:
    text = f"\n# Anna, until June\nanna  {ANNA}\n\tci@example.org\t{BEN} \n   # {BEN}\n"
    assert parse(text) == {"anna": ANNA.encode(), "ci@example.org": BEN.encode()}
    assert parse("") == {}


@pytest.mark.parametrize("text, problem", [
    (ANNA, "line 1 is not a name, a space, and a token"),
    (f"anna {ANNA} x", "line 1 is not a name"),
    (f"anna: {ANNA}", "line 1 is not a name"),
    (f"# x\n-anna {ANNA}", "line 2 is not a name"),
    (f"{'a' * 65} {ANNA}", "line 1 is not a name"),
    ("anna short", "the token of anna, line 1, has less than 16 characters"),
    (f"anna {ANNA}\nanna {BEN}", "the name anna, line 2, is taken"),
    (f"default {ANNA}", "the name default, line 1, is taken"),
    (f"anna {ANNA}\nben {ANNA}", "the token of ben, line 2, has another name already"),
])  # fmt: skip
def test_what_is_no_such_file_is_refused_without_a_word_of_a_token(text: str, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(ValueError, match=problem) as refused:
        NamedTokens(path)
    assert ANNA not in str(refused.value)
    assert str(path) in str(refused.value)


def test_other_characters_are_refused_without_a_word_of_a_token(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"anna {ANNA}ü")
    with pytest.raises(ValueError, match="other characters than ASCII") as refused:
        NamedTokens(tmp_path / "tokens")
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_whoever_is_in_the_file_is_known_and_nobody_else(tmp_path: Path) -> None:
    path, clock = tmp_path / "tokens", Clock()
    path.write_text(f"anna {ANNA}\nben {BEN}\n")
    tokens = NamedTokens(path, clock)
    assert [tokens.name_of(given.encode()) for given in (ANNA, BEN)] == ["anna", "ben"]
    assert [tokens.name_of(given) for given in (b"", b"anna", ANNA[:-1].encode(), b"\xff", ANNA.encode() + b"1")] == [
        ""
    ] * 5

    path.write_text(f"ben {BEN}\n")
    assert tokens.name_of(ANNA.encode()) == "anna", "it isn't asked for each request"
    clock.now += 1
    assert [tokens.name_of(given.encode()) for given in (ANNA, BEN)] == ["", "ben"]


def test_a_mistake_in_the_file_turns_nobody_away_and_its_end_everybody(tmp_path: Path) -> None:
    path, clock = tmp_path / "tokens", Clock()
    path.write_text(f"anna {ANNA}\n")
    tokens, names = NamedTokens(path, clock), []
    for change in (lambda: path.write_text(f"ben {ANNA} and more"), path.unlink, lambda: path.write_text(f"ben {BEN}")):
        change()
        clock.now += 1
        names.append([tokens.name_of(given.encode()) for given in (ANNA, BEN)])
    assert names == [["anna", ""], ["", ""], ["", "ben"]]
