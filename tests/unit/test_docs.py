"""The documents keep up with the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from parallelrun_core.outcome import Outcome
from parallelrun_core.spec import JobSpec
from parallelrun_core.store.keys import JobKeys

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_every_field_of_a_job_is_described_with_the_words_of_the_code() -> None:
    text = (DOCS / "job-spec.md").read_text()
    for name, field in JobSpec.model_fields.items():
        assert field.description, f"JobSpec.{name} has no description"
        assert re.search(rf"^\| `{name}` \| .* \| {re.escape(field.description)} \|$", text, re.MULTILINE), name


def test_the_protocol_names_every_key_and_every_field_of_an_outcome() -> None:
    text = (DOCS / "protocol.md").read_text()
    for key in JobKeys("J").all():
        name = key.rpartition(":")[2]
        assert f":{name}`" in text, f"docs/protocol.md doesn't say what {key} is"
    order = [text.index(f" {name}", text.index("JSON array, in this order")) for name in ("tries", "node", "offset")]
    assert order == sorted(order)
    for name in Outcome.__struct_fields__:
        assert name.removesuffix("32") in text


def test_every_proof_of_a_promise_is_there() -> None:
    for path, test in re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", (DOCS / "promises.md").read_text()):
        assert (ROOT / path).exists(), path
        assert not test or f"def {test}(" in (ROOT / path).read_text(), test


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS.glob("*.md")], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
