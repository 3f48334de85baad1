"""What a few bytes of YAML can cost: attacks that took minutes or gigabytes, each refused or read in a moment."""

from __future__ import annotations

import time

import pytest
import yaml

from parallelrun_core.errors import InvalidInput
from parallelrun_core.spec import load_document
from parallelrun_core.untrusted.bounded_yaml import MAX_DEPTH, MAX_VALUES, BoundedLoader

MERGES = "a0: &a0 {k: v}\n" + "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}], x{i}: 1}}\n" for i in range(1, 26))
WIDE_MERGES = (
    "b: &b\n" + "".join(f"  k{i}: 1\n" for i in range(5_000)) + "".join(f"m{i}: {{<<: *b}}\n" for i in range(100))
)
ALIASES = "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]\n" for i in range(1, 40))
ATTACKS = {
    "merges": (MERGES, "aliases written out"),
    "wide merges": (WIDE_MERGES, "aliases written out"),
    "aliases": (ALIASES, "aliases written out"),
    "an alias in itself": ("a: &a [*a]", "contains itself"),
    "values": ("[" + "x," * (MAX_VALUES + 1) + "]", "more than"),
    "depth": ("- " * (MAX_DEPTH + 1) + "x", "levels deep"),
    "digits": ("a: " + "1" * 900_000, "not a whole number"),
    "a tagged number of base 60": ("a: !!int 1" + ":1" * 300_000, "not a whole number"),
    "a tagged fraction of base 60": ("a: !!float 1" + ":1" * 300_000, "not a number"),
}
ENOUGH_CPU_S = 20.0
"""Far above what a slow machine takes for any of these, and far below what the attacks took: minutes, or no end."""


@pytest.mark.parametrize("attack", ATTACKS)
def test_yaml_that_stands_for_too_much_is_refused_at_once(attack: str) -> None:
    text, reason = ATTACKS[attack]
    began = time.process_time()

    with pytest.raises(InvalidInput, match=reason):
        load_document(text)

    assert time.process_time() - began < ENOUGH_CPU_S


def test_a_list_of_as_many_files_as_a_job_names_is_read() -> None:
    files = [{"file": f"./{number}.csv"} for number in range(17_000)]

    assert load_document("paths:\n" + "".join(f"- file: {each['file']}\n" for each in files)) == {"paths": files}


def test_what_looks_like_a_number_of_base_60_is_a_text() -> None:
    text = "1" + ":1" * 300_000

    assert load_document(f"a: {text}\nb: 1:30\nc: 1:30.5") == {"a": text, "b": "1:30", "c": "1:30.5"}


def test_numbers_are_those_of_yaml_1_2() -> None:
    numbers = load_document("[1, -2, +3, 0o17, 0x1F, 017, 1_000, 1.5, .5, 1., 1e-05, 1E+5, .inf, -.INF]")

    assert numbers == [1, -2, 3, 15, 31, 17, 1000, 1.5, 0.5, 1.0, 1e-05, 1e5, float("inf"), float("-inf")]
    assert load_document("[1e5x, 0o8, 0xg, --1, '1']") == ["1e5x", "0o8", "0xg", "--1", "1"]


def test_ordinary_anchors_and_merges_are_read() -> None:
    text = "base: &base {a: 1, b: 2}\none: {<<: *base, b: 3}\ntwo: {<<: [{a: 4}, *base]}\nthree: *base"

    assert load_document(text) == {
        "base": {"a": 1, "b": 2}, "one": {"a": 1, "b": 3}, "two": {"a": 4, "b": 2}, "three": {"a": 1, "b": 2},
    }  # fmt: skip


def test_without_counting_the_aliases_come_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedLoader, "compose_node", yaml.SafeLoader.compose_node)

    document = load_document(ALIASES)

    assert isinstance(document, dict)
    assert len(document) == 40


def test_without_a_limit_merges_repeat_what_they_merge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedLoader, "compose_node", yaml.SafeLoader.compose_node)
    with pytest.raises(InvalidInput, match="merges written out"):
        load_document(WIDE_MERGES)
    monkeypatch.setattr(BoundedLoader, "flatten_mapping", yaml.SafeLoader.flatten_mapping)

    document = load_document(WIDE_MERGES)

    assert isinstance(document, dict)
    assert sum(len(part) for part in document.values()) > MAX_VALUES
