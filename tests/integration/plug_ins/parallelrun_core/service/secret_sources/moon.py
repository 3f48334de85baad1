"""Secrets on the moon, `moon://CRATER`. A token is good for three questions; values are kept as long as their token.

Each line of the file `MOON_LOG` says what one of these sources has done, in which process.
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Final

from parallelrun_core.service.secret_source import SecretSource, SecretUnusable

_NUMBERS: Final = count(1)
_QUESTIONS_OF_TOKEN: Final = 3


class Moon(SecretSource):
    """A crater."""

    credentials = ("MOON_TOKEN",)

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._number = next(_NUMBERS)
        self._questions_left = 0
        self._tokens = 0
        self._values: dict[str, bytes] = {}

    def read(self, name: str) -> bytes:
        """Return what is kept, or ask."""
        if name not in self._values:
            if not self._questions_left:
                self._renew_token()
            self._questions_left -= 1
            self._note(f"asked for {name}")
            self._values[name] = f"{name} of {self.place}".encode()
        return self._values[name]

    def stamp(self, name: str) -> object:
        """Return the number of the token that a value was asked for with."""
        return self._tokens, name in self._values

    def close(self) -> None:
        """Give the token back."""
        self._note(f"gave back token {self._tokens}")

    def _renew_token(self) -> None:
        if "MOON_TOKEN" not in os.environ:
            raise SecretUnusable("set MOON_TOKEN")
        self._tokens += 1
        self._questions_left = _QUESTIONS_OF_TOKEN
        self._values.clear()
        self._note(f"got token {self._tokens}")

    def _note(self, text: str) -> None:
        with Path(os.environ["MOON_LOG"]).open("a", encoding="utf-8") as log:
            log.write(f"{os.getpid()} source {self._number} {text}\n")


SOURCE = Moon
