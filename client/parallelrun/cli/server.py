"""The server that a command talks to, and the groups of commands that do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial, update_wrapper
from inspect import Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Generic, NamedTuple, TypeAlias, TypeVar

import typer

if TYPE_CHECKING:
    from parallelrun import client

    Client: TypeAlias = client.Client
else:
    Client = object  # what commands call the class, whose module takes long to import

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Resources = TypeVar("_Resources")

Url = Annotated[
    str, typer.Option("--url", help="API URL, for example http://127.0.0.1:8080.", envvar="PARALLELRUN_URL")
]
Token = Annotated[
    str,
    typer.Option(
        "--token",
        help="API token (prefer PARALLELRUN_TOKEN); not needed with `parallelrun up`.",
        show_default=False,
    ),
]
Local = Annotated[bool, typer.Option("--local", help="Those of `parallelrun run`, also when there is a server.")]


class Target(NamedTuple, Generic[_Resources]):
    """The resources that a command works on, such as all datastores, and who has them."""

    resources: _Resources
    location: str
    """Words for people, such as `on the server http://127.0.0.1:8080`."""


class Commands(typer.Typer):
    """A group of commands with options that say which server is meant.

    A command whose first parameter is a `client` has the options of `connect`, and gets a client of that server. One
    whose first parameter is a `target` gets the group's resources: of a server, or as `--local` says of this machine.

    Args:
        remote: returns the group's resources on a server.
        here: returns those of this machine; None: there are none, and no option `--local`.
        options: those of all groups.
    """

    def __init__(
        self, remote: Callable[[Client], Any] | None = None, here: Callable[[], Any] | None = None, **options: Any
    ) -> None:
        super().__init__(no_args_is_help=True, rich_markup_mode=None, **options)
        self._openers: dict[str, Callable[..., AbstractContextManager[Any]]] = {"client": connect}
        if remote is not None:
            self._openers["target"] = partial(_local_or_remote, here, remote) if here else partial(_remote, remote)

    def command(self, name: str | None = None, **options: Any) -> Callable[[_Command], _Command]:
        """Return a decorator that adds a function as a command, as typer's own does.

        It raises TypeError for one whose first parameter is a `target` in a group that has no resources on a server.
        """
        add = super().command(name, **options)

        def add_command(command: _Command) -> _Command:
            first = next(iter(command.__annotations__), "")
            opener = self._openers.get(first)
            if first == "target" and opener is None:
                raise TypeError(f"the command {command.__name__} has a target, so its group needs `remote`")
            add(command if opener is None else _ServerCommand(command, opener))
            return command

        return add_command


class _ServerCommand:
    """A command as typer sees it: with the options of what opens its first parameter in place of that.

    Its signature is read only if it is the one that was called.
    """

    def __init__(self, command: Callable[..., Any], opener: Callable[..., AbstractContextManager[Any]]) -> None:
        self._command = command
        self._opener = opener
        update_wrapper(self, command, assigned=("__module__", "__name__", "__doc__"))
        self.__annotations__: dict[str, Any] = {}

    @property
    def __signature__(self) -> Signature:
        _, *parameters = signature(self._command, eval_str=True).parameters.values()
        return Signature([*parameters, *signature(self._opener, eval_str=True).parameters.values()])

    def __call__(self, **arguments: Any) -> None:
        options = {name: arguments.pop(name) for name in signature(self._opener).parameters}
        with self._opener(**options) as opened:
            self._command(opened, **arguments)


def connect(*, url: Url = "", token: Token = "") -> Client:
    """A client of the given server, else of the cluster that `parallelrun up` started.

    Raises:
        ConnectionFailed: there is neither.
    """
    from parallelrun.client import Client

    return Client(url, token)


@contextmanager
def _remote(
    remote: Callable[[Client], _Resources], /, *, url: Url = "", token: Token = ""
) -> Iterator[Target[_Resources]]:
    """The target on the given server, else on the one that runs."""
    with connect(url=url, token=token) as client:
        yield Target(remote(client), f"on the server {client.url}")


@contextmanager
def _local_or_remote(
    here: Callable[[], _Resources],
    remote: Callable[[Client], _Resources],
    /,
    *,
    local: Local = False,
    url: Url = "",
    token: Token = "",
) -> Iterator[Target[_Resources]]:
    """The target on the given server or on the one that runs, else on this machine."""
    from parallelrun.client import server_to_use
    from parallelrun.errors import ConnectionFailed

    where = "for `parallelrun run` on this machine"
    if not local:
        try:
            url, token = server_to_use(url, token)
        except ConnectionFailed:
            where += ", since no server is given or running"
        else:
            with _remote(remote, url=url, token=token) as target:
                yield target
            return
    yield Target(here(), where)
