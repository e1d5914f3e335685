"""Downloads over HTTP: bounded in bytes by TUF, here in time, and resumed where the connection broke.

What is downloaded of a blob is kept in a file, so that the next attempt, after a restart too, asks for the
rest only. Blobs are named by their contents, so the rest of one is always the rest of the same. A server may
compress metadata: it is expanded a little at a time, so that the bound of TUF holds for what comes out.
"""

from __future__ import annotations

import re
import time
from contextlib import closing, contextmanager
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

import urllib3
from tuf.api.exceptions import DownloadError, DownloadHTTPError
from tuf.ngclient import FetcherInterface
from urllib3.util import SKIP_HEADER

from zodiacedge.errors import Diagnostic, FleetProblem
from zodiacedge.util.gzipped import expanded

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from pathlib import Path

# The address of a blob, which names its contents.
BLOB = re.compile(r"/targets/(?:[^/]+/)*([0-9a-f]{64})\.")
_CHUNK = 1 << 16
_TRIES = 4
# What urllib3 sends by itself and no hub reads.
FEW_HEADERS = {"User-Agent": SKIP_HEADER, "Accept-Encoding": SKIP_HEADER}
_OK, _PARTIAL, _UNSATISFIABLE = 200, 206, 416


def asked(  # noqa: PLR0913 - as urllib3 takes them
    pool: urllib3.PoolManager,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    timeout: urllib3.Timeout | None = None,
) -> urllib3.BaseHTTPResponse:
    """Send a request, whose answer is read and closed by the caller.

    A server closes connections that it kept long enough, also in the moment of the next request, which is
    sent again then.
    """

    def send() -> urllib3.BaseHTTPResponse:
        return pool.request(
            method,
            url,
            headers=headers,
            body=body,
            timeout=timeout or pool.connection_pool_kw["timeout"],
            preload_content=False,
            decode_content=False,
        )

    try:
        return send()
    except urllib3.exceptions.ProtocolError:
        return send()


def checked_base(address: str) -> str:
    """Return the address of a server with a slash at its end; raise if it is none."""
    try:
        parts = urlsplit(address)
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_one = False
    if not is_one:
        note = "write it as http://HOST:PORT or https://HOST:PORT"
        raise FleetProblem(Diagnostic("F009", f"{address} is no address of a hub or a neighbour", note))
    return address if address.endswith("/") else f"{address}/"


class Wire(FetcherInterface):
    """Fetches over HTTP; keeps what it has of blobs in a folder."""

    def __init__(self, partial: Path, *, seconds: float = 60.0) -> None:
        """Keep parts in a folder; a download may take some seconds at most."""
        self._partial = partial
        self._seconds = seconds
        self._pool = urllib3.PoolManager(timeout=urllib3.Timeout(connect=5, read=15), retries=False)
        self.bytes = 0
        """The bytes of all bodies that were received, as they were sent."""

    def part(self, url: str) -> Path | None:
        """Return the file that holds the part of a blob; None for metadata."""
        match = BLOB.search(urlsplit(url).path)
        return self._partial / match.group(1) if match else None

    def forget(self) -> None:
        """Remove all parts: they are complete, or not what they should be."""
        for path in self._partial.glob("*"):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close connections."""
        self._pool.clear()

    def _fetch(self, url: str) -> Iterator[bytes]:
        return self.stream(url)

    def stream(self, url: str) -> Generator[bytes, None, None]:
        """Yield the contents of an address; closing the generator ends the download."""
        end = time.monotonic() + self._seconds
        part = self.part(url)
        received = 0
        if part is not None and part.exists():
            data = part.read_bytes()
            received = len(data)
            yield data
        for attempt in range(_TRIES):
            try:
                with closing(self._rest(url, received, end)) as chunks:
                    for chunk in chunks:
                        received += len(chunk)
                        if part is not None:
                            part.parent.mkdir(parents=True, exist_ok=True)
                            with part.open("ab") as file:
                                file.write(chunk)
                        yield chunk
            except (urllib3.exceptions.HTTPError, OSError) as error:
                if attempt + 1 == _TRIES or time.monotonic() > end or not received:
                    raise DownloadError(f"{url}: {error}") from error
            else:
                return

    def _rest(self, url: str, received: int, end: float) -> Generator[bytes, None, None]:
        """Yield the body behind the bytes that are there."""
        headers = dict(FEW_HEADERS)
        if received:
            headers["Range"] = f"bytes={received}-"
        elif not BLOB.search(urlsplit(url).path):
            headers["Accept-Encoding"] = "gzip"
        response = asked(self._pool, "GET", url, headers=headers)
        try:
            if response.status == _UNSATISFIABLE and received:
                return
            if response.status not in {_OK, _PARTIAL}:
                # A connection whose answer was read goes on: each refresh asks for a root that is not there.
                response.read1(_CHUNK)
                raise DownloadHTTPError(f"{url}: HTTP status {response.status}", response.status)
            # A server without ranges sends everything again.
            skip = received if response.status == _OK else 0
            chunks: Iterator[bytes] = self._chunks(response, url, end)
            if response.headers.get("Content-Encoding") == "gzip":
                chunks = expanded(chunks)
            for chunk in chunks:
                if skip >= len(chunk):
                    skip -= len(chunk)
                    continue
                yield chunk[skip:]
                skip = 0
        except ValueError as error:
            raise DownloadError(f"{url}: {error}") from error
        finally:
            response.close()

    def _chunks(self, response: urllib3.BaseHTTPResponse, url: str, end: float) -> Iterator[bytes]:
        """Yield a body as it arrives."""
        while chunk := response.read1(_CHUNK):
            if time.monotonic() > end:
                raise DownloadError(f"{url}: takes longer than {self._seconds:g} s")
            self.bytes += len(chunk)
            yield chunk


class FirstThatAnswers(FetcherInterface):
    """Fetches from the first of several servers that has something; addresses begin with a mark for them."""

    MARK = "hub:/"

    def __init__(self, wire: Wire, bases: Callable[[], list[str]]) -> None:
        """Ask the servers in an order that may change: the hub first, then neighbours."""
        self._wire = wire
        self._bases = bases
        self._open: Generator[bytes, None, None] | None = None

    @contextmanager
    def download_file(self, url: str, max_length: int) -> Iterator[IO[bytes]]:
        """Download a file; a download that is refused in the middle ends there."""
        try:
            with super().download_file(url, max_length) as file:
                yield file
        finally:
            if self._open is not None:
                self._open.close()
                self._open = None

    def _fetch(self, url: str) -> Iterator[bytes]:
        self._open = self._stream(url)
        return self._open

    def _stream(self, url: str) -> Generator[bytes, None, None]:
        problem: DownloadError | None = None
        for base in self._bases():
            started = False
            try:
                with closing(self._wire.stream(url.replace(self.MARK, base, 1))) as chunks:
                    for chunk in chunks:
                        started = True
                        yield chunk
            except DownloadError as error:
                # What was yielded cannot be taken back; the next attempt begins with another server.
                if started:
                    raise
                # That something is not there is what the first server that answers says.
                if problem is None or isinstance(error, DownloadHTTPError):
                    problem = error
            else:
                return
        raise problem or DownloadError("there is no server to ask")
