"""Commands that do one thing with each of several: what is refused for one keeps none of the others back."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from parallelrun.cli.output import OutputFormat, dump, say, show_change


class RefusedNames:
    """The refusals of a command about several things.

    Args:
        names: of the things, each once. Of a single one, a refusal ends the command as any other error does.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(dict.fromkeys(names))
        self._errors: list[Exception] = []

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Say what is refused inside in a line with the name, and go on. Nobody goes on who can't reach the server."""
        from parallelrun.cli.errors import lines_about
        from parallelrun.errors import ConnectionFailed, ParallelRunError

        try:
            yield
        except ConnectionFailed:
            raise
        except ParallelRunError as error:
            if len(self.names) == 1:
                raise
            self._errors.append(error)
            first, *others = lines_about(error)
            headline = first if name in first else first.replace("error: ", f"error: {name}: ", 1)
            print(headline, *others, sep="\n", file=sys.stderr, flush=True)

    def exit(self) -> None:
        """End the command with the exit code of the first refusal, if there was one."""
        from parallelrun.cli.errors import exit_code_of

        if self._errors:
            say(f"{len(self._errors)} of {len(self.names)} were refused")
            raise typer.Exit(exit_code_of(self._errors[0]))


def change_each(
    names: Sequence[str],
    change: Callable[[str], Any],
    form: OutputFormat,
    text: Callable[[Any], str],
    *,
    wait: Callable[[str], Any] | None = None,
) -> list[Any]:
    """Change things one after the other, and print what has become of each; of several, JSON and YAML are a list.

    Args:
        text: what people are told of one that was changed.
        wait: returns a thing once it is what it was asked to become. All are asked before any is waited for.

    Returns:
        What has become of them.

    Raises:
        typer.Exit: something was refused; all that weren't are changed.
    """
    refusals = RefusedNames(names)
    as_list = len(refusals.names) > 1 and form in (OutputFormat.JSON, OutputFormat.YAML)
    changed: dict[str, Any] = {}

    def take(step: Callable[[str], Any], *, is_last: bool) -> None:
        for name in list(changed) or refusals.names:
            with refusals.of(name):
                changed[name] = step(name)
                if is_last and not as_list:
                    show_change(changed[name], form, name=name, text=text(changed[name]))

    try:
        take(change, is_last=wait is None)
        if wait and changed:
            take(wait, is_last=True)
    finally:
        if as_list:
            dump(list(changed.values()), form)
    refusals.exit()
    return list(changed.values())
