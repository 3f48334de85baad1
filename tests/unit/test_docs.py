"""The documents agree with the code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from parallelrun_core.described import descriptions
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.keys import JobKeys
from parallelrun_core.wire.outcome import Outcome, Use

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
HOMES = {
    "core": "shared/parallelrun_core",
    "worker": "services/agent/parallelrun_worker",
    **{
        name: f"services/{name}/parallelrun_{name}"
        for name in ("agent", "api", "concatenator", "master", "provisioner")
    },
}
"""The folders that paths are abbreviated by."""
SOURCES = [path for top in ("benchmarks", "client", "services", "shared") for path in (ROOT / top).rglob("*.py")]
ENDS = {
    "/".join(parts[at:])
    for top in ("benchmarks", "client", "deploy", "docs", "examples", "services", "shared", "supply_chain", "tests")
    for path in (ROOT / top).rglob("*.*")
    if (parts := path.relative_to(ROOT).parts)
    for at in range(len(parts) - 1)
}
"""All files, by the last two or more parts of their paths."""
PAGES = [*ROOT.glob("*.md"), *DOCS.glob("*.md"), *(ROOT / "tests").rglob("*.md")]


def test_every_field_of_a_job_is_described_with_the_words_of_the_code() -> None:
    text = (DOCS / "job-spec.md").read_text()
    described = descriptions(JobSpec)
    for name in JobSpec.model_fields:
        assert name in described, f"JobSpec.{name} has no description"
        assert re.search(rf"^\| `{name}` \| .* \| {re.escape(described[name])} \|$", text, re.MULTILINE), name


def test_the_protocol_names_every_key_and_every_field_of_an_outcome() -> None:
    text = " ".join((DOCS / "protocol.md").read_text().split())
    for key in JobKeys("J").all():
        name = key.rpartition(":")[2]
        assert f":{name}`" in text, f"docs/protocol.md doesn't say what {key} is"
    order = [text.index(f" {name}", text.index("JSON array, in this order")) for name in ("tries", "node", "offset")]
    assert order == sorted(order)
    for name in Outcome.__struct_fields__ + Use.__struct_fields__:
        assert name.removesuffix("32") in text


def promises() -> list[tuple[str, ...]]:
    """The rows of the table: number, promise, proof, twin."""
    lines = [line for line in (DOCS / "promises.md").read_text().splitlines() if re.match(r"\| \d", line)]
    rows = [tuple(cell.strip() for cell in line[1:-1].split(" |")) for line in lines]
    assert {len(row) for row in rows} == {4}
    assert [int(number) for number, *_ in rows] == list(range(1, len(rows) + 1))
    return rows


def test_promises_are_made_once() -> None:
    beginnings = [promise[:60] for _, promise, *_ in promises()]
    assert len(set(beginnings)) == len(beginnings)


@pytest.mark.parametrize("number, promise, proof, twin", promises(), ids=[row[0] for row in promises()])
def test_every_promise_has_a_proof_and_a_twin_that_are_there(number: str, promise: str, proof: str, twin: str) -> None:
    """`file::test`, or `test` alone for one in the last file that was named."""
    paths = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", proof)
    assert paths, f"promise {number} ({promise}) has no proof"
    names = re.findall(r"`(?:(tests/[\w/.]+)::)?(test_\w+)`", twin)
    assert names, f"promise {number} ({promise}) has no twin"
    for path, name in paths:
        assert (ROOT / path).exists(), path
        assert not name or f"def {name}(" in (ROOT / path).read_text(), name
    for path, name in names:
        where = ROOT / (path or paths[-1][0])
        assert f"def {name}(" in where.read_text(), f"{name} is not in {where}"


def test_every_proof_that_the_security_page_names_is_there() -> None:
    named = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", (ROOT / "SECURITY.md").read_text())

    assert len(named) > 10
    assert [path for path, _ in named if not (ROOT / path).exists()] == []
    assert [name for path, name in named if name and f"def {name}(" not in (ROOT / path).read_text()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text()):
        there = page.parent / target if target else page
        assert there.exists(), f"{page.name}: {target}"
        assert not heading or heading in headings(there), f"{page.name}: {target}#{heading}"


def headings(page: Path) -> set[str]:
    """What a link may have after its `#`."""
    lines = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", line.lower()).replace(" ", "-") for line in lines}


def test_the_readme_repeats_what_other_pages_say() -> None:
    why = " ".join((ROOT / "README.md").read_text().partition("## Why not")[2].partition("\n## ")[0].split())
    [count] = re.findall(r"more than (\d+) such \[promises\]", why)
    assert int(count) < len(promises())
    measured = (DOCS / "performance.md").read_text()
    for figure in re.findall(r"takes (\d+) µs of CPU here, (\d+) with Ray Data and ([\d,]+)", why)[0]:
        assert re.search(rf"(?<![\d,.]){figure}(?![\d,])", measured), f"{figure} µs is not in docs/performance.md"


@pytest.mark.parametrize("page", ["architecture.md", "decisions.md", "failures.md", "promises.md", "protocol.md"])
def test_every_file_that_is_named_can_be_opened(page: str) -> None:
    """Their paths are abbreviated: `core/x.py` is `shared/parallelrun_core/x.py`."""
    named = re.findall(rf"`({'|'.join(HOMES)})/([\w./]+)`", (DOCS / page).read_text())
    missing = [f"{home}/{path}" for home, path in named if not (ROOT / HOMES[home] / path).exists()]
    assert named
    assert [path for path in missing if not path.endswith("/x.py")] == []


def comments_of(source: str) -> Iterator[str]:
    """The comments and docstrings of a module."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value


def files_not_there(source: str) -> list[str]:
    """The paths of files of ours in comments and docstrings that lead nowhere: abbreviated, or their last parts."""
    named = [
        path for text in comments_of(source) for path in re.findall(r"[\w.-]+(?:/[\w.-]+)*/\w+\.(?:py|lua|md)\b", text)
    ]
    return [path for path in named if path not in ENDS and not _is_abbreviated(path) and not path.endswith("/x.py")]


def _is_abbreviated(path: str) -> bool:
    home, _, rest = path.partition("/")
    return home in HOMES and (ROOT / HOMES[home] / rest).exists()


def test_every_file_that_a_comment_names_is_there() -> None:
    missing = {str(path.relative_to(ROOT)): files_not_there(path.read_text()) for path in SOURCES}
    assert {path: names for path, names in missing.items() if names} == {}


def test_a_file_that_was_moved_is_missed_in_a_comment() -> None:
    source = (
        '"""See `core/layout.py`, `wire/message.py`."""\nx = "core/row.py"  # as in parallelrun_core/row_format.py\n'
    )
    assert files_not_there(source) == ["parallelrun_core/row_format.py"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_table_is_in_one_piece(page: Path) -> None:
    """A row after an empty line is shown as plain text, with its bars."""
    blocks = re.findall(r"(?:^\|.*\n?)+", page.read_text(), re.MULTILINE)
    assert [block[:80] for block in blocks if not re.match(r"\|.*\n\|---", block)] == []


def test_the_contents_have_a_row_for_every_page() -> None:
    named = set(re.findall(r"\(([\w-]+\.md)\)", (DOCS / "contents.md").read_text()))

    assert sorted(page.name for page in DOCS.glob("*.md") if page.name not in named | {"contents.md"}) == []


def test_the_readme_is_two_screens_and_leads_to_the_contents() -> None:
    text = (ROOT / "README.md").read_text()

    assert len(text.splitlines()) <= 150
    assert "(docs/contents.md)" in text
