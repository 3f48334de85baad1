"""Examples of work that waits run offline, as they say, against the stand-in of a service."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parallelrun import run
from parallelrun.stand_in import StandIn

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="agents need Linux"),
]

EXAMPLES = Path(__file__).parents[3] / "examples"
DOCS = Path(__file__).parents[3] / "docs"
MODEL = """
def load_model(): ...

def generate(texts):
    import time
    time.sleep(0.05)
    if "bad" in texts:
        raise ValueError("bad")
    return [f"{text} in a batch of {len(texts)}" for text in texts]
"""


@pytest.fixture
def service() -> Iterator[StandIn]:
    with StandIn(answer_s=0.01) as service:
        service.in_background()
        yield service
        service.shutdown()


def example(name: str, folder: Path) -> Path:
    """A copy without what earlier runs have left."""
    return shutil.copytree(EXAMPLES / name, folder / name, ignore=shutil.ignore_patterns("out", "texts.jsonl"))


def lines(folder: Path) -> list[dict[str, Any]]:
    (path,) = (path for path in folder.rglob("*") if path.is_file())
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_example_embeddings_has_a_vector_for_each_text_within_its_limit(tmp_path: Path) -> None:
    folder = example("embeddings", tmp_path)

    done = subprocess.run(
        [sys.executable, str(folder / "main.py")], capture_output=True, text=True, check=False, timeout=240
    )

    assert done.returncode == 0, done.stderr
    output, rows, calls = done.stdout.splitlines()[-3:]
    assert output == f"output: {folder}/out/vectors.jsonl"
    assert rows == "rows: 2997"
    answered, refused = (int(part.split()[0]) for part in calls.removeprefix("calls: ").split(", "))
    assert (answered, refused) == (150, 0)
    vectors = [json.loads(line) for line in (folder / "out" / "vectors.jsonl").read_text().splitlines()]
    assert [row["id"] for row in vectors] == [number for number in range(3000) if number not in (7, 1234, 2999)]


def test_example_openai_batch_has_a_line_for_each_request_in_its_file(tmp_path: Path, service: StandIn) -> None:
    folder = example("openai_batch", tmp_path)
    requests = [json.loads(line) for line in (folder / "data" / "batch.jsonl").read_text().splitlines()]

    done = subprocess.run(
        [
            sys.executable, "-P", "-m", "parallelrun", "run", str(folder / "pipeline.yml"),
            "--limit", str(folder / "limit.yml"), "--output", str(tmp_path / "out"),
            "--set", f"jobs.send.environment_variables.API_URL={service.url}",
        ],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    answered, failed = lines(tmp_path / "out" / "output"), lines(tmp_path / "out" / "errors")
    bad = ["without-messages", "no-such-path", "by-get"]
    assert [line["custom_id"] for line in answered] == [
        request["custom_id"] for request in requests if request["custom_id"] not in bad
    ]
    assert [line["custom_id"] for line in failed] == bad
    for line in [*answered, *failed]:
        assert set(line) == {"id", "custom_id", "response", "error"}
        assert line["response"] is None or set(line["response"]) == {"status_code", "request_id", "body"}
    assert {line["response"]["status_code"] for line in answered} == {200}
    assert answered[0]["response"]["body"]["choices"][0]["message"]["content"] == "4 words, the longest is purr?"
    assert [line["response"] and line["response"]["status_code"] for line in failed] == [400, 404, None]
    assert failed[2]["error"] == {"code": "invalid_request", "message": "method must be POST"}
    assert service.stats["answered"] == len(requests) - 1


def test_example_openai_batch_has_an_error_for_each_odd_request(tmp_path: Path, service: StandIn) -> None:
    folder = example("openai_batch", tmp_path)
    chat: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "grüß dich"}]}
    bodies: dict[str, Any] = {
        "good": chat, "nobody": None, "words": chat | {"max_tokens": "many"}, "huge": chat | {"max_tokens": 9_000_000},
        "nan": chat | {"temperature": float("nan")}, "again": chat,
    }  # fmt: skip
    requests: list[dict[str, Any]] = [
        {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body}
        for name, body in bodies.items()
    ]
    requests += [{"method": "POST"}, {"custom_id": 7}, requests[0]]
    (tmp_path / "odd.jsonl").write_text("".join(json.dumps(request) + "\n" for request in requests))

    done = subprocess.run(
        [
            sys.executable, "-P", "-m", "parallelrun", "run", str(folder / "pipeline.yml"),
            "--limit", str(folder / "limit.yml"), "--output", str(tmp_path / "out"),
            "--set", f"inputs.requests.path={tmp_path / 'odd.jsonl'}",
            "--set", f"jobs.send.environment_variables.API_URL={service.url}",
        ],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    answered, failed = lines(tmp_path / "out" / "output"), lines(tmp_path / "out" / "errors")
    assert [line["custom_id"] for line in answered] == ["good", "again", "good"]
    assert {line["custom_id"]: line["error"]["message"] for line in failed} == {
        "nobody": "body must be an object",
        "words": "max_tokens must be a whole number",
        "huge": "a call of 9,000,025 tokens: the limit 'openai' has 2,000,000 in a minute",
        "nan": "body has a number that is none in JSON, such as NaN",
        None: "custom_id must be a text",
        7: "custom_id must be a text",
    }


def test_example_of_gathered_batches_has_each_row_once_beside_a_bad_one(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "engines-on-gpus.md").read_text(), re.DOTALL)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "generate.py").write_text(MODEL + next(block for block in blocks if "run_batches" in block))
    (tmp_path / "texts.csv").write_text("text\n" + "".join(f"text {number}\n" for number in range(400)) + "bad\n")
    document = {
        "name": "gathered", "code": str(tmp_path / "src"), "entry_script": "generate.py",
        "inputs": {"data": {"path": str(tmp_path / "texts.csv"), "transformations": ["read_delimited"]}},
        "mini_batch_size": "rows:2", "mini_batches_in_flight": 32, "run_max_try": 3,
    }  # fmt: skip

    result = run(document, output=tmp_path / "out", processes=1, progress=False)

    assert result.output is not None
    rows = result.output.read_text().splitlines()
    texts = [row.partition(" in a batch of ")[0] for row in rows]
    assert texts == [text for text in (f"text {number}" for number in range(400)) if text in set(texts)]
    assert len(texts) > 200
    assert result.job.progress.failed >= 1
    assert max(int(row.rpartition(" ")[2]) for row in rows) > 2, "rows of several mini-batches"
