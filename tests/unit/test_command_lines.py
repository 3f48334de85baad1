"""The command lines of the documents are such as the command line takes, and its help is whole."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from parallelrun.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
COMMAND: Any = get_command(app)
_SHELLS = ("", "console", "bash")
_LINE = re.compile(r"(?:^(?:\$ | {4}|)(?:\w+=\S* )*|\$\(|&& )parallelrun (.*)")
_INNER = re.compile(r"\$\([^)]*\)")
_END = re.compile(r"\s+#\s|\)|\s[|&;>]|\s\[")


def leaf(words: list[str]) -> tuple[Any, list[str]]:
    """The command that these words call, and the words after its name."""
    command, rest = COMMAND, list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, f"there is no command {' '.join(words)!r}"
        command = command.commands[rest.pop(0)]
    return command, rest


def options_of(command: Any) -> set[str]:
    """All names of all its options."""
    return {"--help", "-h"}.union(*(parameter.opts for parameter in command.params))


def written_to_be_run(page: Path) -> list[str]:
    """What stands after `parallelrun` in its blocks of code."""
    text = page.read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    lines = [line for language, block in blocks if language in _SHELLS for line in block.splitlines()]
    lines += re.findall(r"^ {4}\S.*$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return [_END.split(_INNER.sub("X", each))[0] for line in lines for each in _LINE.findall(line)]


def mentioned(page: Path) -> list[str]:
    """What stands after `parallelrun` between backquotes, up to what the reader is to choose."""
    return [re.split(r"\s\||…", each)[0] for each in re.findall(r"`parallelrun ([^`]+)`", page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_line_of_a_page_is_taken(page: Path) -> None:
    for line in written_to_be_run(page):
        command, rest = leaf(shlex.split(line))
        if hasattr(command, "commands"):
            assert set(rest) <= options_of(command), f"{page.name}: parallelrun {line}"
        else:
            command.make_context(command.name, rest)  # raises what a user would read
    for line in mentioned(page):
        command, rest = leaf(re.sub(r"(\w+)\|\S+", r"\1", " ".join(line.split())).split())
        options = {word for word in rest if re.match(r"--?[a-z]", word)}
        assert options <= options_of(command), f"{page.name}: parallelrun {line}"


_OF_PAGE = re.compile(r"[\"`](parallelrun [a-z][^\"`\n]*)")
_CHOSEN = {"action.verb": "cancel", "kind": "data", "number": "3"}
"""What stands for a value in a command line of the web page; else `1`."""


def test_every_command_line_that_the_web_page_copies_is_taken() -> None:
    sources = [path.read_text() for path in (ROOT / "studio" / "src").rglob("*.tsx")]
    lines = [each for text in sources for each in _OF_PAGE.findall(text)]
    assert len(lines) >= 25
    for line in lines:
        whole = re.split(r"\$\{\w+ (?:\?|&&)", line)[0]  # without what is written only sometimes
        words = shlex.split(re.sub(r"\$\{([\w.]+)[^}]*\}", lambda found: _CHOSEN.get(found[1], "1"), whole))[1:]
        command, rest = leaf(words)
        if hasattr(command, "commands"):
            assert not rest, line
        else:
            command.make_context(command.name, rest)  # raises what a user would read


def test_the_pages_with_command_lines_are_read() -> None:
    lines = {page.name: len(written_to_be_run(page)) for page in PAGES}

    assert lines["README.md"] >= 2
    assert lines["clusters.md"] >= 5
    assert lines["computes.md"] >= 3
    assert lines["azure-client.md"] >= 2


def groups(command: Any, *path: str) -> Iterator[str]:
    """The names of all groups of commands below one."""
    if hasattr(command, "commands"):
        yield " ".join(path)
        for name, below in command.commands.items():
            yield from groups(below, *path, name)


@pytest.mark.parametrize("path", list(groups(COMMAND)), ids=lambda path: path or "all")
def test_no_line_of_a_list_of_commands_is_cut_off(path: str) -> None:
    """On a terminal of 80 columns."""
    group, _ = leaf(path.split())
    with group.make_context("parallelrun", [], resilient_parsing=True) as context:
        text = group.get_help(context)

    assert [line for line in text.partition("--help")[2].splitlines() if line.endswith("...")] == []


@pytest.mark.parametrize("service", ["agent", "api", "concatenator", "master", "provisioner"])
def test_the_help_of_a_service_has_words_instead_of_types(service: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        import_module(f"parallelrun_{service}.main").main(["--help"])
    text = capsys.readouterr().out
    assert not end.value.code
    assert "PATH" in text
    assert "NUMBER" in text
    assert re.findall(r"null|SecretStr|--[\w-]+ \{?(?:int|float|str|bool|Path)\b|default factory", text) == []
