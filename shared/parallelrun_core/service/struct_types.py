"""What msgspec keeps of each struct's type, made while a process has one thread.

msgspec makes it when a struct is first decoded, and lets others see it before it is complete: two threads that decode
the first struct of a type at the same time end the process with SIGSEGV (seen with 0.22).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec


def prepare_structs() -> None:
    """Let msgspec look at all structs that are imported by now: some milliseconds for all of a service. Those that are
    imported later need a decoder of their module, which is made while it is imported."""
    for struct in {*_below(msgspec.Struct)}:
        msgspec.json.Decoder(struct)


def _below(base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for struct in base.__subclasses__():
        yield struct
        yield from _below(struct)
