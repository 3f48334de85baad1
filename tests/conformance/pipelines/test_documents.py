"""What documents of pipelines mean: each has its spec beside it, in `expected`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from parallelrun.job_file.reading import read_job_file
from parallelrun_core.errors import InvalidInput
from parallelrun_core.intake.reading import read_job
from tests.conformance.pipelines.documents import DOCUMENTS, HERE, meaning

REFUSED = [
    pytest.param(case["document"], case["refused"], id=f"{path.stem}: {name}")
    for path in sorted((HERE / "refused").glob("*.yml"))
    for name, case in yaml.safe_load(path.read_text(encoding="utf-8")).items()
]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_document_means_what_is_expected(path: Path) -> None:
    expected = yaml.safe_load((HERE / "expected" / path.name).read_text(encoding="utf-8"))
    assert meaning(path) == expected


def test_nothing_else_is_expected() -> None:
    assert {path.name for path in (HERE / "expected").iterdir()} == {path.name for path in DOCUMENTS}
    assert len(DOCUMENTS) >= 25


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_pipeline_means_the_same_when_it_is_sent_and_read_again(path: Path) -> None:
    reading = read_job_file(path)
    sent = json.dumps(reading.spec.model_dump(mode="json", exclude_unset=True))
    again = read_job(json.loads(sent))
    assert again.spec == reading.spec
    assert [step for step, _ in again.jobs()] == [step for step, _ in reading.jobs()]


@pytest.mark.parametrize("document, refused", REFUSED)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, document: str, refused: dict[str, str]) -> None:
    for name in ("data", "src"):
        (tmp_path / name).symlink_to(HERE / "documents" / name)
    (tmp_path / "components").symlink_to(HERE / "components")
    file = tmp_path / "pipeline.yml"
    file.write_text(document, encoding="utf-8")
    with pytest.raises(InvalidInput) as caught:
        read_job_file(file)
    told: dict[str, list[str]] = {}
    for problem in caught.value.problems:
        hint = f" ({problem.hint})" if problem.hint else ""
        told.setdefault(problem.pointer, []).append(f"{problem.message}{hint}")
    assert {pointer: "; ".join(texts) for pointer, texts in told.items()} == refused
