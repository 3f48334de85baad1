"""Loads the entry script and finds its functions (reference §3.1)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from parallelrun_worker.mini_batches.mini_batch import Context, MiniBatch

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class UserScript:
    """The loaded module of the entry script. The constructor imports it, and so runs the user's code.

    Args:
        code: the root of the user's code.
        entry_script: a file below it, or the dotted path of a module in it (`batch_score.main`).
        job_id: for the context.
        events: the event loop of a worker with several mini-batches in flight, on which the caller awaits run(). None:
            coroutine functions are called as ordinary ones, each until it returns.
        enqueues: the script has the functions of `streaming.py` in place of run().

    Raises:
        whatever the user's code raises; AttributeError when it has no run().
    """

    def __init__(
        self,
        code: str,
        entry_script: str,
        job_id: str,
        *,
        events: AbstractEventLoop | None = None,
        enqueues: bool = False,
    ) -> None:
        path = os.path.join(code, entry_script)
        dotted = not os.path.isfile(path)
        if dotted:
            path = os.path.join(code, *entry_script.split(".")) + ".py"
        # The code's root and the script's own folder: both are where scripts expect to import from.
        for folder in (code, os.path.dirname(path)):
            if folder not in sys.path:
                sys.path.insert(0, folder)
        module = _import(entry_script) if dotted else _load(path)
        self._job_id = job_id
        self.module = module
        self._events = events
        self._run: Any = None if enqueues else module.run
        self._takes_context = not enqueues and _positional_parameters(module.run) >= 2
        self.is_async = is_coroutine_function(self._run)
        """Its run() is a coroutine function."""
        self.init: Callable[[], object] | None = self._synchronous(getattr(module, "init", None))
        self.shutdown: Callable[[], object] | None = self._synchronous(getattr(module, "shutdown", None))
        if events is None:
            self._run = self._synchronous(self._run)

    def _synchronous(self, function: Any) -> Any:
        """Return a function that waits for a coroutine function on the event loop; any other one as it is."""
        if not is_coroutine_function(function):
            return function
        if self._events is None:
            import asyncio

            self._events = asyncio.new_event_loop()
        events = self._events
        return lambda *arguments: events.run_until_complete(function(*arguments))

    def under(self, call: Callable[..., object]) -> None:
        """Call the functions by `call(function, *arguments)` from now on."""
        self._run = partial(call, self._run)
        self.init = partial(call, self.init) if self.init else None
        self.shutdown = partial(call, self.shutdown) if self.shutdown else None

    def run(self, mini_batch: int, batch: MiniBatch, part: tuple[int, int] | None = None) -> object:
        """Call the user's run(), with the context if it has a parameter for it.

        Args:
            part: the index of the first item and the number of items, of a mini-batch whose items are run apart.
        """
        if self._takes_context:
            return self._run(batch.value, self.context(mini_batch, batch, part))
        return self._run(batch.value)

    def context(self, mini_batch: int, batch: MiniBatch, part: tuple[int, int] | None = None) -> Context:
        """Return the description of a mini-batch that run() may take."""
        return Context(mini_batch, batch, self._job_id, part)


_CO_COROUTINE = 0x80
"""`inspect.CO_COROUTINE`: to import inspect takes as long as an empty job's first mini-batch."""


def is_coroutine_function(function: object) -> bool:
    """Return whether it is defined by `async def`, also when a method or a decorated one is."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is not None:
        return bool(code.co_flags & _CO_COROUTINE)
    if function is None or isinstance(function, type):
        return False
    import inspect

    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _import(name: str) -> Any:
    """Import `package.module`: the entry script was given as a module path."""
    from importlib import import_module

    return import_module(name)


def _load(path: str) -> Any:
    """Import the file under its own name, so that its classes can be unpickled; under another name if that is taken."""
    from importlib.util import module_from_spec, spec_from_file_location

    name = os.path.splitext(os.path.basename(path))[0]
    if not name.isidentifier() or name in sys.modules:
        name = "entry_script_of_the_user"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _positional_parameters(function: Callable[..., object]) -> int:
    code = getattr(function, "__code__", None)
    if code is not None and not hasattr(function, "__wrapped__") and not hasattr(function, "__self__"):
        return int(code.co_argcount)
    import inspect

    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in kinds for parameter in inspect.signature(function).parameters.values())
