"""The script's own test, which needs no job and no service: `python -m pytest src`."""

import asyncio

import ask
import pandas as pd

from parallelrun.script import ItemError


async def rows_of(texts):
    await ask.init()
    try:
        return await ask.run(pd.DataFrame({"id": range(len(texts)), "text": texts}))
    finally:
        await ask.shutdown()


def test_a_text_is_answered_and_an_empty_one_fails_alone(monkeypatch):
    monkeypatch.setenv("LLM_URL", "")
    monkeypatch.setenv("LLM_MODEL", "stand-in")
    first, second = asyncio.run(rows_of(["two words", " "]))
    assert (first["id"], first["answer"]) == (0, "2 words, the longest is words")
    assert isinstance(second, ItemError)
    assert str(second) == "the row has no text"
