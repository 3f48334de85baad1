"""The command `parallelrun-api`."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, cast

import uvicorn
from anyio.to_thread import run_sync

from parallelrun_api.app import create_app
from parallelrun_api.context import Context, build_context
from parallelrun_api.http.audit import Audit, AuditFile
from parallelrun_api.http.connections import MAX_HEAD_BYTES, Connections, raise_limit
from parallelrun_api.http.lazy_fastapi import leave_out_pydantic_1
from parallelrun_api.http.protocol import has_ticks, protocol_for
from parallelrun_api.http.token import Token, load_token
from parallelrun_api.settings import ApiSettings
from parallelrun_api.submission.clean_up import CleanUp
from parallelrun_core.assets.site import read_site
from parallelrun_core.errors import InvalidInput
from parallelrun_core.layout import PRIVATE_FOLDER
from parallelrun_core.service import telemetry
from parallelrun_core.service.process import hide_memory
from parallelrun_core.service.process_start import prepare_structs
from parallelrun_core.store.connection import without_password
from parallelrun_core.store.fitness import EXIT_UNFIT, UnfitRedis, pauses_until_fit

log = telemetry.logger()

_GRACE_S: Final = 10
_SWEEP_EVERY_S: Final = 1.0
_TICK_EVERY_S: Final = 1.0
_TICKS_OF_UVICORN: Final = 10
"""How many of its own ticks uvicorn counts in that time."""
_BACKLOG: Final = 2048
_ACCEPTED_AT_ONCE: Final = 32
"""asyncio goes on accepting for as long as the backlog says, before those that were ended are closed."""


def main(argv: list[str] | None = None) -> None:
    """Serve until SIGTERM or SIGINT; exits with 1 when it can't listen and with 3 when Redis is not fit for use."""
    hide_memory()
    leave_out_pydantic_1()
    settings = ApiSettings.from_command_line(argv)
    telemetry.configure("api", log_format=settings.log_format)
    raise_limit()
    try:
        settings.root.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        token = load_token(settings)
        if settings.site is not None:
            read_site(settings.site)
        audit = _audit(settings.audit_log)
        listener = _listen(settings.host, settings.port)
    except (OSError, ValueError, InvalidInput) as error:
        log.error("not_started", error=str(error))
        raise SystemExit(1) from None
    raise SystemExit(asyncio.run(serve(settings, token, listener, audit)))


async def serve(settings: ApiSettings, token: Token, listener: socket.socket, audit: Audit) -> int:
    """Serve on a listening socket until a signal comes; returns the exit code."""
    context = build_context(settings)
    config = uvicorn.Config(
        create_app(context, token, audit),
        http=cast("type[asyncio.Protocol]", protocol_for(context.connections)),
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        backlog=_ACCEPTED_AT_ONCE,
        # What it warns of is up to anybody who can connect.
        log_level="error",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
        ws="none",
    )
    prepare_structs()
    server = _Server(config, context)
    host, port = listener.getsockname()[:2]
    log.info(
        "started",
        host=host,
        port=port,
        token_needed=token.is_needed,
        token_file=token.file,
        tokens_file=str(settings.tokens_file or ""),
        redis=without_password(settings.redis_url),
        root=str(settings.root),
    )
    tasks = [
        asyncio.create_task(_in_background(context, server), name="background"),
        asyncio.create_task(_sweep(context.connections), name="sweep"),
    ]
    await server.serve(sockets=[listener])
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    log.info("stopped")
    return server.exit_code


class _Server(uvicorn.Server):
    """Ends event streams when it is asked to stop, and then exits with a code of its own instead of by the signal."""

    def __init__(self, config: uvicorn.Config, context: Context) -> None:
        super().__init__(config)
        self.exit_code = 0
        self._context = context
        self._is_stopping = asyncio.Event()

    def stop(self, exit_code: int = 0) -> None:
        """Answer the open requests, and end."""
        self.exit_code = exit_code
        self.should_exit = True
        self._is_stopping.set()
        self._context.stop()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(_BACKLOG)  # the kernel's queue was made as short as the number that is accepted at once

    async def main_loop(self) -> None:
        """Wait for the end, and renew the `date` of answers each second: uvicorn's own loop wakes all the time.

        A release of uvicorn whose loop looks different runs its own.
        """
        if not has_ticks(uvicorn.Server):
            await super().main_loop()
            return
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += _TICKS_OF_UVICORN
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_stopping.wait(), _TICK_EVERY_S)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let open requests be answered; without a connection, end at once: uvicorn waits for a tenth of a second."""
        await asyncio.sleep(0)  # asyncio may have accepted one that uvicorn hears of in its next turn
        await asyncio.sleep(0)
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)
            return
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        await self.lifespan.shutdown()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        yield


async def _in_background(context: Context, server: _Server) -> None:
    """Work that need not be done before the first request is answered. The server ends if it fails."""
    try:
        settings = context.settings
        pauses = pauses_until_fit(context.redis, may_forget=settings.allow_volatile_redis, role=settings.redis_user)
        while (pause_s := await run_sync(next, pauses, None)) is not None:  # noqa: ASYNC110
            await asyncio.sleep(pause_s)  # there is no event for a server that comes up
        await run_sync(_import_what_submissions_need)
        await asyncio.gather(context.registrar.run(), CleanUp(settings.root, context.submissions).run())
    except UnfitRedis as error:
        log.error("redis_unfit", error=str(error))
        server.stop(EXIT_UNFIT)
    except Exception:
        log.exception("background_failed")
        server.stop(1)


async def _sweep(connections: Connections) -> None:
    while True:
        await asyncio.sleep(_SWEEP_EVERY_S)
        connections.sweep()


def _import_what_submissions_need() -> None:
    import parallelrun_core.store.rq.wake  # noqa: F401


def _audit(path: Path | None) -> Audit:
    """The audit log in this file, and what was read in one beside it; None: on stderr. Raises OSError."""
    if path is None:
        return Audit()
    return Audit(AuditFile(path), reads_file=AuditFile(path.with_name(f"{path.name}.reads")))


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's algorithm off only if the protocol is given; with it, each answer takes 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


if __name__ == "__main__":
    main()
