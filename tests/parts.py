"""The tests of `make test`, and the parts of `make test-all`: read from tests/parts.toml.

`python -m tests.parts test` prints what pytest gets from `make test`; `python -m tests.parts 1` the files of part 1.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
PARTS_FILE: Final = ROOT / "tests" / "parts.toml"


@dataclass(frozen=True)
class Topic:
    """A part of `make test` that proves one thing about the product.

    Attributes:
        name: the thing that they prove.
        cases: the most cases that pytest may count among them.
        tests: folders, files and single tests, as pytest names them.
        without: files in these folders that are only in `make test-all`.
    """

    name: str
    cases: int
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()

    def has(self, test: str) -> bool:
        """Tell if a file, or a test by its pytest name, belongs to this topic."""
        return any(_is_within(test, each) for each in self.tests) and not any(
            _is_within(test, each) for each in self.without
        )


@dataclass(frozen=True)
class Parts:
    """The content of parts.toml.

    Attributes:
        topics: what `make test` runs.
        folders: for each part of `make test-all` the folders and files that belong to it.
        long: files that begin first, as they take longest.
    """

    topics: tuple[Topic, ...]
    folders: dict[str, tuple[str, ...]]
    long: frozenset[str] = frozenset()

    @classmethod
    def read(cls, path: Path = PARTS_FILE) -> Parts:
        """Read a file.

        Raises:
            KeyError: a topic lacks its name, cases or tests.
        """
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        topics = (
            Topic(each["name"], each["cases"], tuple(each["tests"]), tuple(each.get("without", ())))
            for each in document["test"]
        )
        parts = {name: tuple(folders) for name, folders in document["test-all"].items()}
        return cls(tuple(topics), parts, frozenset(document.get("long", ())))

    def topic_of(self, test: str) -> Topic | None:
        """The topic to which a test of `make test` belongs; none for a test that only `make test-all` runs."""
        return next((topic for topic in self.topics if topic.has(test)), None)

    def part_of(self, test_file: str) -> str:
        """The part of `make test-all` whose folder is the nearest to a file, or which names it.

        Raises:
            LookupError: no part has it, or two have.
        """
        nearest = max((len(each) for each in self._all_folders() if _is_within(test_file, each)), default=0)
        parts = [
            part
            for part, folders in self.folders.items()
            if any(len(each) == nearest and _is_within(test_file, each) for each in folders)
        ]
        if len(parts) != 1:
            raise LookupError(f"{test_file} belongs to {len(parts)} parts of tests/parts.toml: {', '.join(parts)}")
        return parts[0]

    def _all_folders(self) -> Iterable[str]:
        return (each for folders in self.folders.values() for each in folders)

    def arguments(self, selection: str, test_files: Sequence[str]) -> list[str]:
        """The files and tests to pass to pytest, long ones first.

        Args:
            selection: `test`, the name of a part, or `all` for all parts.
            test_files: all files with tests, relative to the repository.

        Raises:
            LookupError: there is no such selection.
        """
        test_files = sorted(test_files, key=lambda each: each not in self.long)
        if selection == "test":
            files = [each for each in test_files if self.topic_of(each)]
            single = [each for topic in self.topics for each in topic.tests if "::" in each]
            return [*single, *files]
        if selection != "all" and selection not in self.folders:
            raise LookupError(f"there is no part '{selection}': choose one of {', '.join(self.folders)} or all")
        return [each for each in test_files if not self.topic_of(each) and selection in ("all", self.part_of(each))]


def all_test_files() -> list[str]:
    """All files with tests, relative to the repository."""
    paths = (path for path in (ROOT / "tests").rglob("test_*.py") if "golden" not in path.parts)
    return sorted(str(path.relative_to(ROOT)) for path in paths)


def _is_within(test: str, name: str) -> bool:
    """Tell if a file or test has this name, is in the file of this name, or below the folder of this name."""
    return test == name or test.startswith((f"{name}/", f"{name}::", f"{name}["))


if __name__ == "__main__":
    try:
        print(" ".join(Parts.read().arguments(sys.argv[1], all_test_files())))
    except LookupError as error:
        sys.exit(str(error))
