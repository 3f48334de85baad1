"""Operators: who may change what nodes a cluster has. Those who run it, not all who may submit jobs.

The definition of a compute decides what an engine starts, as which user, and what of its machines it sees. Whoever
could define one would have the rights of the provisioner.
"""

from __future__ import annotations

from parallelrun_api.http.errors import NotAnOperator
from parallelrun_api.people.person import CURRENT, ONLY_ONE

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
