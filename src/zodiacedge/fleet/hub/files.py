"""Files of a repository for devices: metadata compressed, blobs with ranges, and no header that nobody reads.

Blobs are compressed as they are published, and named by their contents.
"""

from __future__ import annotations

from stat import S_ISREG
from typing import TYPE_CHECKING

from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse, Response

from zodiacedge.fleet.trust.metadata import SERVED
from zodiacedge.util.gzipped import gzipped

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request

# Whoever asks for a part of a file may read them.
_UNREAD = ("accept-ranges", "content-type", "etag", "last-modified")
_MISSING = 404


class Files:
    """The metadata and the blobs of a repository, and nothing else of its folder."""

    def __init__(self, folder: Path) -> None:
        """Serve the repository in a folder."""
        self._folder = folder

    async def answer(self, request: Request) -> Response:
        """Answer with a file."""
        path = request.url.path
        if not SERVED.fullmatch(path):
            return Response(status_code=_MISSING)
        whole = "Range" not in request.headers
        compress = whole and path.startswith("/metadata/") and _takes_gzip(request)
        return await run_in_threadpool(self._file, path, compress=compress, whole=whole)

    def _file(self, path: str, *, compress: bool, whole: bool) -> Response:
        file = self._folder / path.lstrip("/")
        try:
            if compress:
                return Response(gzipped(file.read_bytes()), headers={"Content-Encoding": "gzip"})
            status = file.stat()
        except OSError:
            # There is none, or its name is too long.
            return Response(status_code=_MISSING)
        if not S_ISREG(status.st_mode):
            return Response(status_code=_MISSING)
        response = FileResponse(file, stat_result=status)
        if whole:
            for name in _UNREAD:
                del response.headers[name]
        return response


def _takes_gzip(request: Request) -> bool:
    """Return whether a client takes a file compressed."""
    return "gzip" in request.headers.get("Accept-Encoding", "")
