"""Each test runs in `make test` or in one part of `make test-all`, and `make test` stays within its budget."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.parts import ROOT, Parts, Topic, all_test_files

PARTS = Parts.read()
TEST_OF_THIS = str(Path(__file__).relative_to(ROOT))
NAMED = [each for topic in PARTS.topics for each in (*topic.tests, *topic.without)]


def test_parts_have_each_file_once() -> None:
    files = all_test_files()
    by_part = {part: PARTS.arguments(part, files) for part in PARTS.folders}
    in_parts = sorted(file for part in by_part.values() for file in part)
    in_make_test = [name for name in PARTS.arguments("test", files) if "::" not in name]

    assert all(by_part.values())
    assert in_parts == sorted(PARTS.arguments("all", files))
    assert sorted([*in_parts, *in_make_test]) == files


@pytest.mark.parametrize("name", [*NAMED, *(each for folders in PARTS.folders.values() for each in folders)])
def test_parts_name_only_what_exists(name: str) -> None:
    file, _, test = name.partition("::")
    assert (ROOT / file).exists()
    assert not test or f"def {test.partition('[')[0]}(" in (ROOT / file).read_text()


def test_parts_leave_engines_out_of_make_test() -> None:
    names = [name for name in PARTS.arguments("test", all_test_files()) if "::" not in name]
    assert [name for name in names if "mark.docker" in (ROOT / name).read_text() and name != TEST_OF_THIS] == []


def test_parts_of_which_there_are_none_are_refused_with_those_that_exist() -> None:
    with pytest.raises(LookupError, match=r"no part '7': choose one of 1, 2, 3, 4, 5, 6 or all"):
        PARTS.arguments("7", [])


def test_parts_that_share_a_file_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "parts.toml"
    file.write_text('test = []\n[test-all]\n1 = ["tests/unit"]\n2 = ["tests", "tests/unit"]\n')

    with pytest.raises(LookupError, match=r"tests/unit/test_a\.py belongs to 2 parts .*: 1, 2"):
        Parts.read(file).part_of("tests/unit/test_a.py")
    assert Parts.read(file).part_of("tests/chaos/test_a.py") == "2"


def test_the_budget_of_make_test_is_kept(request: pytest.FixtureRequest) -> None:
    """All tests that pytest has collected for this run count, so that `make test` counts all of its own.

    A second try collects the tests that have failed, and would count only these.
    """
    assert not request.config.getoption("lf", default=False), "the first try says which topic has too many cases"
    assert over_budget(PARTS.topics, [item.nodeid for item in request.session.items]) == []


def test_the_budget_of_make_test_counts_cases() -> None:
    topic = Topic("two", cases=2, tests=("tests/a", "tests/b.py::test_one"), without=("tests/a/test_long.py",))
    two = ["tests/a/test_x.py::test_1", "tests/b.py::test_one[x]"]

    assert over_budget([topic], [*two, "tests/a/test_long.py::test_1", "tests/b.py::test_one_more"]) == []
    assert over_budget([topic], [*two, "tests/a/test_y.py::test_1"]) == ["two: 3 cases, budget 2"]


def over_budget(topics: tuple[Topic, ...] | list[Topic], tests: list[str]) -> list[str]:
    """The topics that have more cases than they may, with both numbers."""
    counts = Counter(topic.name for test in tests for topic in topics if topic.has(test))
    return [
        f"{topic.name}: {counts[topic.name]} cases, budget {topic.cases}"
        for topic in topics
        if counts[topic.name] > topic.cases
    ]
