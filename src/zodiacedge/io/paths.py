"""Paths of files: local ones, and URIs that Arrow has a file system for (S3, Google Cloud Storage, HDFS).

A `RemotePath` has those methods of `pathlib.Path` that loading uses, so the rest of `io` does not distinguish
the two. Arrow is imported with the first remote path. Credentials and endpoints come from the environment
(`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL` and so on) of the process or Spark task: a URI has no secrets. The
files of a load are determined in `sources`.
"""

from __future__ import annotations

import glob
import io
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple
from urllib.parse import unquote

from zodiacedge.extras import need
from zodiacedge.io.problems import missing, problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem

    from zodiacedge.errors import LoadProblem

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<host>[^/]*)/*(?P<path>.*)", re.DOTALL)
_REMOTE = {"s3": "s3", "s3a": "s3", "gs": "gs", "hdfs": "hdfs"}
# No secret before an @, which Arrow would accept: it would appear in reports.
_BUCKET = re.compile(r"[A-Za-z0-9._-]+")
_HOST = {"s3": _BUCKET, "gs": _BUCKET, "hdfs": re.compile(r"[A-Za-z0-9._@:-]*")}
_SECRET = re.compile(r"(?<=://)[^/]*@")
_VARIABLES = ("AWS_", "GOOGLE_", "CLOUD", "HADOOP_")
_AWS = re.compile(
    r".*AWS Error (?P<code>\w+) during \w+ operation: (?P<said>.*?)\.?(; Details: .*| \(Request ID: .*)?$"
)
_NO_BUCKET = re.compile("NO_SUCH_BUCKET|[Bb]ucket '[^']*' not found")
_DENIED = re.compile(
    "ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE|EXPIRED_TOKEN|PERMISSION_DENIED|UNAUTHENTICATED|OAuth2"
)


class PathInfo(NamedTuple):
    """Metadata of a path: kind and size."""

    is_dir: bool
    is_file: bool
    st_size: int


@dataclass(frozen=True, slots=True)
class RemotePath:
    """A file or folder of a bucket or of an HDFS host; `path` has no leading or trailing slash."""

    scheme: str
    host: str
    path: str
    known: PathInfo | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """Return the URI."""
        return f"{self.scheme}://{self.host}" + (f"/{self.path}" if self.path else "")

    def __truediv__(self, name: str) -> RemotePath:
        """Return the path of a name in this folder."""
        return RemotePath(self.scheme, self.host, f"{self.path}/{name}".strip("/"))

    @property
    def name(self) -> str:
        """The last component."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> RemotePath:
        """The folder."""
        return RemotePath(self.scheme, self.host, self.path.rpartition("/")[0])

    def absolute(self) -> RemotePath:
        """Return the path itself: a URI does not depend on the working folder."""
        return self

    def stat(self) -> PathInfo:
        """Return the metadata: those of the listing, or else the current ones."""
        if self.known:
            return self.known
        with _arrow_problems(self):
            return _info(self._system().get_file_info(self._native))

    def is_dir(self) -> bool:
        """Whether the path is a folder."""
        return self.stat().is_dir

    def is_file(self) -> bool:
        """Whether the path is a file."""
        return self.stat().is_file

    def exists(self) -> bool:
        """Whether the path exists."""
        info = self.stat()
        return info.is_file or info.is_dir

    def iterdir(self, *, below: bool = False) -> Iterator[RemotePath]:
        """Yield the paths of this folder; with `below` also of its subfolders."""
        with _arrow_problems(self):
            from pyarrow.fs import FileSelector  # noqa: PLC0415 - see `_system`

            entries = self._system().get_file_info(
                FileSelector(self._native, allow_not_found=True, recursive=below)
            )
        for entry in entries:
            name = entry.path.removeprefix(self._native).strip("/")
            # An object may be called a//b, which no path can express.
            if name:
                yield replace(self / name, known=_info(entry))

    def open(self, _mode: Literal["rb"] = "rb", buffering: Literal[0] = 0) -> io.RawIOBase:  # noqa: ARG002 - as a path's
        """Open a file for reading; each read is one request."""
        with _arrow_problems(self):
            return _RemoteStream(self, self._system().open_input_file(self._native))

    def read_bytes(self) -> bytes:
        """Return the content of a small file."""
        with self.open() as stream:
            return stream.readall()

    @property
    def _native(self) -> str:
        """The path in Arrow's file system."""
        return f"/{self.path}" if self.scheme == "hdfs" else f"{self.host}/{self.path}".rstrip("/")

    def _system(self) -> FileSystem:
        settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith(_VARIABLES)))
        return _system(f"{self.scheme}://{self.host}/", settings)


AnyPath = Path | RemotePath


def is_uri(text: str) -> bool:
    """Whether a text is the URI of a file."""
    match = _URI.match(text)
    return bool(match and (match["scheme"] in _REMOTE or match["scheme"] == "file"))


def path_of(text: str) -> AnyPath:
    """Return the path of a text; for a remote URI its metadata is read."""
    match = _URI.fullmatch(text)
    if not match:
        return Path(text)
    scheme, host, path = match["scheme"], match["host"], match["path"]
    if scheme == "file" and host in {"", "localhost"}:
        return Path("/" + unquote(path))
    if scheme not in _REMOTE or not _HOST[_REMOTE[scheme]].fullmatch(host):
        raise problem(
            "I021",
            f"{_SECRET.sub('…@', text)} is not a location that files can be read from",
            "give a path, file:///path, s3://bucket/path, gs://bucket/path or hdfs://host:port/path",
        )
    need("tables", f"a URI of {scheme}")
    remote = RemotePath(_REMOTE[scheme], host, path.strip("/"))
    return replace(remote, known=remote.stat())


def glob_paths(pattern: AnyPath) -> list[AnyPath]:
    """Return the paths that match a pattern, sorted, so that a load does not depend on the listing order."""
    if isinstance(pattern, Path):
        return [Path(m) for m in sorted(glob.glob(str(pattern), recursive=True))]  # noqa: PTH207 - a whole path
    paths = [RemotePath(pattern.scheme, pattern.host, "")]
    for part in pattern.path.split("/"):
        if not glob.has_magic(part):
            paths = [path / part for path in paths if not (path.known and path.known.is_file)]
            continue
        folders = [path for path in paths if path.is_dir()]
        if part == "**":
            inside = [*folders, *(below for path in folders for below in _visible(path))]
            paths = list(dict.fromkeys(inside))
        else:
            paths = [path for folder in folders for path in folder.iterdir() if _matches(path.name, part)]
    known = (replace(path, known=path.stat()) for path in paths)
    return sorted((path for path in known if path.exists()), key=str)


def _visible(folder: RemotePath) -> Iterator[RemotePath]:
    """Yield the paths below a folder, without hidden files and folders."""
    start = len(folder.path)
    return (path for path in folder.iterdir(below=True) if "/." not in f"/{path.path[start:].strip('/')}")


def _matches(name: str, part: str) -> bool:
    return fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))


class _RemoteStream(io.RawIOBase):
    """A file of Arrow whose exceptions are converted to problems."""

    def __init__(self, path: RemotePath, file: NativeFile) -> None:
        self._path = path
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        with _arrow_problems(self._path):
            return int(self._file.readinto(buffer))

    def readall(self) -> bytes:
        with _arrow_problems(self._path):
            return bytes(self._file.read())

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        self._file.close()
        super().close()


@lru_cache(maxsize=64)
def _system(root: str, _settings: tuple[tuple[str, str], ...]) -> FileSystem:
    """Return the file system of a bucket or host; it depends on environment variables."""
    import pyarrow as pa  # noqa: PLC0415 - few loads need it, and every import costs start-up time
    from pyarrow import fs  # noqa: PLC0415 - as above

    try:
        # Google's client would retry for a quarter of an hour.
        return fs.FileSystem.from_uri(root + ("?retry_limit_seconds=60" if root.startswith("gs:") else ""))[0]
    except (pa.ArrowException, ImportError) as error:
        raise _no_system(root, error) from error
    except OSError as error:
        # HDFS fails here if its libraries are missing; other file systems fail at the first request.
        if not root.startswith("hdfs:"):
            raise
        raise _no_system(root, error) from error


def _no_system(root: str, error: Exception) -> LoadProblem:
    return problem(
        "I021",
        f"Arrow has no file system for {root}: {_first_line(error)}",
        "copy the files; or, for hdfs://, name Java and Hadoop: JAVA_HOME, HADOOP_HOME and CLASSPATH",
    )


def _info(entry: FileInfo) -> PathInfo:
    from pyarrow.fs import FileType  # noqa: PLC0415 - as above

    return PathInfo(entry.type == FileType.Directory, entry.type == FileType.File, entry.size or 0)


@contextmanager
def _arrow_problems(path: RemotePath) -> Iterator[None]:
    """Convert exceptions of Arrow to problems."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing(path) from error
    except (OSError, ValueError, NotImplementedError) as error:
        # Arrow's exceptions are subclasses of these.
        text = _first_line(error)
        if _NO_BUCKET.search(text):
            raise missing(path) from error
        message = _AWS.sub(r"\g<said> (\g<code>)", text).partition(" error_info=")[0][:300]
        if _DENIED.search(text):
            raise problem(
                "I002",
                f"{path} may not be read: {message}",
                "credentials come from the environment, such as AWS_ACCESS_KEY_ID; in Spark's tasks too",
            ) from error
        raise problem("I019", f"{path} cannot be read: {message}") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
