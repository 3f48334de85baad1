"""The script's own test with an engine that only pretends, so it needs no GPU: `python -m pytest src`."""

import asyncio
import sys
from types import SimpleNamespace

import generate
import pandas as pd
import pytest

from parallelrun.script import ItemError, WorkerBroken


class EngineDeadError(Exception): ...


class PretendedEngine:
    async def generate(self, prompt, sampling, request_id):
        if "dead" in prompt:
            raise EngineDeadError("no GPU")
        if "long" in prompt:
            raise ValueError("longer than the context")
        yield SimpleNamespace(outputs=[SimpleNamespace(text=prompt.upper(), token_ids=[1, 2])])


class Tokenizer:
    def apply_chat_template(self, messages, **_):
        return messages[0]["content"]


def rows_of(*texts):
    return asyncio.run(generate.run(pd.DataFrame({"id": range(len(texts)), "text": texts})))


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    exceptions = SimpleNamespace(EngineDeadError=EngineDeadError)
    monkeypatch.setitem(sys.modules, "vllm.v1.engine.exceptions", exceptions)
    for name, value in {"engine": PretendedEngine(), "tokenizer": Tokenizer(), "sampling": None}.items():
        monkeypatch.setattr(generate, name, value, raising=False)


def test_a_text_is_answered_and_others_fail_alone():
    first, second, third = rows_of("a text", "", "a long text")
    assert first == {"id": 0, "answer": "A TEXT", "tokens": 2}
    assert isinstance(second, ItemError)
    assert str(third) == "longer than the context"


def test_a_dead_engine_breaks_its_worker():
    with pytest.raises(WorkerBroken, match="no GPU"):
        rows_of("dead")
