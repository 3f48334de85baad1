"""Several tokens, each with a name, in a file that operators change while the server runs; operators are some of them.

A line for each, `NAME TOKEN`; empty lines, and those that begin with `#`, have none. The audit log has the names.
Whoever is no longer in the file is turned away within a second.
"""

from __future__ import annotations

import hmac
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from parallelrun_api.http.errors import NotAnOperator
from parallelrun_api.people.person import CURRENT, ONLY_ONE
from parallelrun_core.service import telemetry

log = telemetry.logger()

_CHECK_EVERY_S: Final = 1.0
_LINE: Final = re.compile(r"([A-Za-z0-9][\w.@-]{0,63})\s+([!-~]+)", re.ASCII)
_LEAST_CHARACTERS: Final = 16
_State = tuple[int, int, int]
_GONE: Final = (0, 0, 0)


def parse(text: str) -> dict[str, bytes]:
    """The tokens of such a file, by name.

    Raises:
        ValueError: a line is none; the message names it by its number, and never by what it holds.
    """
    tokens: dict[str, bytes] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise ValueError(f"line {number} is not a name, a space, and a token of visible ASCII characters")
        name, token = match[1], match[2].encode()
        if len(token) < _LEAST_CHARACTERS:
            raise ValueError(f"the token of {name}, line {number}, has less than {_LEAST_CHARACTERS} characters")
        if name == ONLY_ONE or name in tokens:
            raise ValueError(f"the name {name}, line {number}, is taken")
        if token in tokens.values():
            raise ValueError(f"the token of {name}, line {number}, has another name already")
        tokens[name] = token
    return tokens


class NamedTokens:
    """The tokens of a file as it is now, or was a second ago.

    What can't be read, or is no such file any more, is logged; until that is mended, what was read last holds. A file
    that is gone has no tokens.

    Raises:
        OSError, ValueError: it can't be read, or is no such file.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._state = _state_of(path)
        self._tokens = self._read()
        self._is_well = True
        self._check_at = clock() + _CHECK_EVERY_S

    def name_of(self, presented: bytes) -> str:
        """Whose token this is; empty: nobody's."""
        if self._clock() >= self._check_at:
            self._refresh()
        name = ""
        for each, token in self._tokens.items():  # all of them, so that the time tells nothing
            if hmac.compare_digest(presented, token):
                name = each
        return name

    def token_of(self, name: str) -> bytes:
        """The token of this name; empty: there is none."""
        if self._clock() >= self._check_at:
            self._refresh()
        return self._tokens.get(name, b"")

    def _read(self) -> dict[str, bytes]:
        try:
            return parse(self._path.read_text(encoding="ascii"))
        except ValueError as error:
            reason = "it has other characters than ASCII" if isinstance(error, UnicodeError) else error
            raise ValueError(f"{self._path}: {reason}") from None

    def _refresh(self) -> None:
        self._check_at = self._clock() + _CHECK_EVERY_S
        try:
            state = _state_of(self._path)
            if state == self._state:
                return
            tokens = self._read()
        except FileNotFoundError:
            state, tokens = _GONE, {}
        except (OSError, ValueError) as error:
            if self._is_well:
                log.error("tokens_not_read", error=str(error), hint="those that were read before are still valid")
            self._is_well = False
            return
        names, before = set(tokens), set(self._tokens)
        if state != self._state:
            log.info("tokens_read", added=sorted(names - before), removed=sorted(before - names), count=len(names))
        self._state, self._tokens, self._is_well = state, tokens, True


def _state_of(path: Path) -> _State:
    """Return what changes whenever a file does."""
    status = os.stat(path)
    return status.st_ino, status.st_mtime_ns, status.st_size


_NOBODY_ASKED = ""
"""The name of no token: the server requires none."""


class Operators:
    """The names of the tokens that may.

    Args:
        named: those of a file of tokens that may, too. The token that is set by itself, or that the server has made,
            always may.
    """

    def __init__(self, named: frozenset[str]) -> None:
        self._names = named | {ONLY_ONE, _NOBODY_ASKED}

    def check(self, token_name: str) -> None:
        """Make sure that the owner of a token may.

        Raises:
            NotAnOperator: not with this token; says what to do.
        """
        if token_name not in self._names and not CURRENT.get().is_operator:
            raise NotAnOperator(
                f"The token {token_name!r} may run jobs, not change the cluster or make tokens. Whoever runs this "
                "server can allow that with --operators, or with a token of the scope admin."
            )
