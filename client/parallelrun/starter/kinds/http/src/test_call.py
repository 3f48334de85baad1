"""The script's own test, which needs no job and no service: `python -m pytest src`."""

import asyncio

import call

from parallelrun.script import ItemError


async def rows_of(paths):
    await call.init()
    try:
        return await call.run([str(path) for path in paths])
    finally:
        await call.shutdown()


def test_a_file_is_answered_and_an_empty_one_fails_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("SERVICE_URL", "")
    (tmp_path / "good.txt").write_text("two words")
    (tmp_path / "empty.txt").touch()
    first, second = asyncio.run(rows_of([tmp_path / "good.txt", tmp_path / "empty.txt"]))
    assert first == {"file": "good.txt", "bytes": 9, "words": 2}
    assert isinstance(second, ItemError)
    assert "HTTP 422" in str(second)
