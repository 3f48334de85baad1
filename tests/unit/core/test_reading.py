"""Whatever is in a document, it becomes a job or problems that say where; nothing else comes of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parallelrun_core.errors import InvalidInput, Problem
from parallelrun_core.intake.reading import read_job
from tests.conformance.documents import COMPONENT, CONFIG, PIPELINE, changed

STEP_WITH_COMPONENT = changed(PIPELINE, **{"jobs.score": {
    "component": COMPONENT, "inputs": {"files": "${{parent.inputs.raw}}", "limit": 3},
}})  # fmt: skip
OWN: dict[str, Any] = {"entry_script": "a.py", "inputs": {"a": "/a", "b": 5}, "environment": {"pip": ["six"]}}

FORMS: dict[str, Any] = {
    "type": "pipeline",
    "inputs": {"raw": {"path": "/a"}, "count": 4, "is_full": {"type": "boolean", "default": True}},
    "outputs": {"all": {"type": "uri_folder"}},
    "settings": {"force_rerun": True},
    "jobs": {
        "make": {
            "type": "command",
            "command": "cp ${{inputs.raw}} ${{outputs.made}}",
            "environment": "azureml:e@latest",
            "inputs": {"raw": "${{parent.inputs.raw}}"},
            "outputs": {"made": {"type": "uri_folder"}, "ok": {"type": "boolean"}},
        },
        "score": {"component": COMPONENT, "inputs": {"files": "${{parent.jobs.make.outputs.made}}"}},
        "own": {
            "entry_script": "a.py",
            "inputs": {"a": "${{jobs.make.outputs.made}}"},
            "outputs": {"b": {}},
            "after": ["make"],
        },
        "old": {
            **CONFIG,
            "inputs": ["${{parent.jobs.own.outputs.b}}"],
            "outputs": {"c": {}},
            "output": "${{outputs.c}}",
        },
        "inner": {
            "type": "pipeline",
            "inputs": {"data": "${{parent.jobs.old.outputs.c}}"},
            "outputs": {"d": "${{parent.outputs.all}}"},
            "jobs": {
                "say": {
                    "command": "ls",
                    "inputs": {"a": "${{parent.inputs.data}}"},
                    "outputs": {"d": "${{parent.outputs.d}}"},
                },
            },
        },
        "gate": {
            "type": "if_else",
            "condition": "${{parent.jobs.make.outputs.ok}}",
            "true_block": "${{parent.jobs.old}}",
        },
        "switch": {"type": "if_else", "condition": "${{parent.inputs.is_full}}", "false_block": ["own", "inner"]},
    },
}  # fmt: skip
SENT = read_job(FORMS).spec.model_dump(mode="json", exclude_unset=True)

texts = st.sampled_from([
    "", "x", "1kb", "${{inputs.x}}", "${{parent.inputs.count}}", "$[[a]]", "azureml:a", "~x", "a\0",
    "${{parent.jobs.make.outputs.made}}", "${{jobs.score}}", "${{parent.outputs.all}}", "pipeline", "command",
    "if_else",
])  # fmt: skip
names = st.sampled_from(["path", "type", "mode", "value", "pip", "conda_file", "x", ""])
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(names, inner, max_size=3)
        | st.dictionaries(st.integers(0, 2), inner, max_size=2)
    ),
    max_leaves=5,
)


def places(document: object) -> Iterator[tuple[Any, Any]]:
    """Every part of a document that can be replaced: what holds it, and its key."""
    if isinstance(document, dict | list):
        for key, part in document.items() if isinstance(document, dict) else enumerate(document):
            yield document, key
            yield from places(part)


def test_a_file_whose_name_no_file_can_have_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as told:
        read_job({**OWN, "environment": {"conda_file": "a\0.yml"}}, folder=tmp_path)
    assert [problem.pointer for problem in told.value.problems] == ["/environment/conda_file"]


@pytest.mark.parametrize("document", [PIPELINE, STEP_WITH_COMPONENT, COMPONENT, CONFIG, OWN, FORMS, SENT])
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_any_document_is_a_job_or_is_told_what_is_wrong(document: dict[str, Any], data: st.DataObject) -> None:
    spoilt = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(list(places(spoilt))))
        holder[key] = data.draw(plain)
    found: tuple[Problem, ...] = ()
    try:
        read_job(spoilt, folder=data.draw(st.sampled_from([None, Path("/nowhere")])))
    except InvalidInput as error:
        found = error.problems or (Problem(pointer="?", message="no problem is told"),)
    assert all(problem.pointer == "" or problem.pointer.startswith("/") for problem in found), found


STEP = {"type": "parallel", "inputs": {}, "task": {"type": "run_function"}}


@pytest.mark.parametrize("document, words", [
    ({"predict": STEP}, "these are steps of a pipeline (predict), without the pipeline"),
    ({"prepare": {"type": "command", "command": "true"}, "predict": STEP}, "(prepare, predict)"),
    ({"inputs": {"q": {"type": "string"}}, "nodes": [{"name": "a", "type": "llm", "source": {}}]}, "prompt flow"),
    ({"nodes": [{"name": "a", "use_variants": True}], "node_variants": {}}, "flow.dag.yaml"),
    ({"nodes": [{"name": "a", "type": "python", "inputs": {}}], "environment": {"image": "x"}}, "flow.dag.yaml"),
    ({"$schema": "https://azuremlschemas.azureedge.net/promptflow/latest/Flow.schema.json"}, "prompt flow"),
    ({"entry": "chat:answer", "environment": {"python_requirements_txt": "r.txt"}}, "flow.flex.yaml"),
])  # fmt: skip
def test_what_is_taken_for_a_job_is_refused_by_its_name(document: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_job(document, folder=Path("/x"))
    [problem] = caught.value.problems
    assert words in problem.message
    assert problem.hint


@pytest.mark.parametrize(
    "size, number", [("010", "10"), ("010kb", "10"), ("rows:0500", "500"), ("10", ""), ("1mb", "")]
)
def test_a_size_with_a_zero_in_front_is_noted_as_decimal(size: str, number: str) -> None:
    own = {"entry_script": "count.py", "inputs": "/data", "mini_batch_size": size}
    notes = [note.message for note in read_job(own).notes if note.pointer == "/mini_batch_size"]
    assert notes == (
        [f"'{size}' is read as the decimal number {number}; write it without 0 in front"] if number else []
    )
