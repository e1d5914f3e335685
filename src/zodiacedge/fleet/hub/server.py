"""The hub as a web server: metadata and blobs with ranges, enrolment, status, and news at once.

GET  /metadata/…, /targets/…      the repository
POST /enrol                       {name, key, proof}; returns the root to trust
POST /status                      a status, signed in the header Zodiac-Signature
GET  /news/DEVICE?after=VERSION   waits until the assignment has a later version, half a minute at most
GET  /healthz, /metrics
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Targets

from zodiacedge.errors import FleetProblem, StoreProblem, ZodiacError
from zodiacedge.fleet.hub.assignments import HubState
from zodiacedge.fleet.hub.files import Files
from zodiacedge.fleet.hub.watch import Watch
from zodiacedge.fleet.trust.metadata import device_path, read_signed

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from starlette.requests import Request

_MOST_BODY = 1 << 20
_WAIT_SECONDS = 30.0
_BAD, _FORBIDDEN, _LARGE, _UNAVAILABLE = 400, 403, 413, 503


class Server(uvicorn.Server):
    """A web server of a hub; when it ends, nobody is left waiting for news."""

    def __init__(self, hub: Hub, config: uvicorn.Config) -> None:
        """Serve the application of a hub."""
        super().__init__(config)
        self._hub = hub

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer those who wait, and end."""
        self._hub.release()
        await super().shutdown(sockets)
        # Connections that did not end in time are broken off: nothing of the server is left.
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


class Hub:
    """A hub in a folder, as an application of Starlette."""

    def __init__(self, folder: Path, keys: Path, notify: Callable[[ZodiacError], object]) -> None:
        """Open the folders of a hub and of its key; `notify` gets problems of an operator's files."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._news: dict[str, asyncio.Event] = {}
        self._waiting: Counter[str] = Counter()
        """How many wait for news of a device."""
        self._released = False
        self._counts = {"enrolled": 0, "statuses": 0, "refused": 0}
        self.state = HubState(folder, keys, self._changed)
        self._watch = Watch(self.state, notify)
        files = Files(self.state.repository.path)
        self.app = Starlette(
            routes=[
                Route("/enrol", self._enrol, methods=["POST"]),
                Route("/status", self._status, methods=["POST"]),
                Route("/news/{device}", self._wait),
                Route("/healthz", self._healthz),
                Route("/metrics", self._metrics),
                Route("/metadata/{path:path}", files.answer),
                Route("/targets/{path:path}", files.answer),
            ],
            lifespan=self._lifespan,
        )

    def close(self) -> None:
        """End the watch and close the store."""
        self._watch.close()
        self.state.close()

    def release(self) -> None:
        """Answer those who wait for news, and let nobody wait any more: the server ends."""
        self._released = True
        for event in self._news.values():
            event.set()

    @asynccontextmanager
    async def _lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        yield
        self._loop = None

    def _changed(self, device: str) -> None:
        """Wake those who wait for news of a device; called by any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake, device)

    def _wake(self, device: str) -> None:
        event = self._news.pop(device, None)
        if event:
            event.set()

    async def _enrol(self, request: Request) -> Response:
        return await self._answered(request, "enrolled", lambda body: self.state.enrol(json.loads(body)))

    async def _status(self, request: Request) -> Response:
        signature = request.headers.get("Zodiac-Signature", "")

        def take(body: bytes) -> bytes:
            self.state.report(body, signature)
            return b""

        return await self._answered(request, "statuses", take)

    async def _answered(self, request: Request, count: str, take: Callable[[bytes], bytes]) -> Response:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _MOST_BODY:
                return JSONResponse({"error": "the request is too large"}, _LARGE)
        try:
            answer = await run_in_threadpool(take, body)
        except (StoreProblem, OSError) as problem:
            # The disk is full: the device tries again.
            return JSONResponse({"error": str(problem)}, _UNAVAILABLE)
        except ZodiacError as problem:
            self._counts["refused"] += 1
            found = problem.diagnostics[0]
            status = _FORBIDDEN if isinstance(problem, FleetProblem) else _BAD
            return JSONResponse({"code": found.code, "error": found.message, "note": found.note}, status)
        except (ValueError, RecursionError) as error:
            self._counts["refused"] += 1
            return JSONResponse({"error": str(error)}, _BAD)
        self._counts[count] += 1
        return Response(answer)

    async def _wait(self, request: Request) -> Response:
        device = request.path_params["device"]
        try:
            after, path = int(request.query_params.get("after", "0")), device_path(device)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, _BAD)
        # Whoever waits is registered before the version is read, so that no news is missed.
        event = self._news.setdefault(device, asyncio.Event())
        self._waiting[device] += 1
        try:
            version = await run_in_threadpool(self._version, path)
            if version <= after and not self._released:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_WAIT_SECONDS):
                        await event.wait()
                version = await run_in_threadpool(self._version, path)
        finally:
            self._waiting[device] -= 1
            if not self._waiting[device]:
                del self._waiting[device]
                self._news.pop(device, None)
        return Response(json.dumps({"version": version}))

    def _version(self, path: str) -> int:
        try:
            data = (self.state.repository.metadata.path / path).read_bytes()
            return read_signed(data, Targets).signed.version
        except (OSError, RepositoryError):
            return 0

    async def _healthz(self, _request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _metrics(self, _request: Request) -> Response:
        kb = self.state.kb
        counts = await run_in_threadpool(lambda: kb.explicit_counts() | kb.derived())
        lines = [f"zodiac_hub_{name}_total {number}" for name, number in self._counts.items()]
        lines.append(f"zodiac_hub_waiting {self._waiting.total()}")
        lines.append(f"zodiac_hub_version {kb.version}")
        shown = ("device", "requested", "assigned", "halted", "failed", "worked", "stale")
        lines += [f'zodiac_hub_facts{{predicate="{name}"}} {counts.get(name, 0)}' for name in shown]
        return PlainTextResponse("\n".join([*lines, ""]))
