"""Where files are: at a path, or at a URI that Arrow has a file system for (S3, Google's store, HDFS).

A `Remote` has what loading uses of `pathlib.Path`, under the same names, so the rest of `io` asks neither
which of them it has. Arrow is loaded when the first is asked. Who may read, and where the endpoint is, stands
in the environment (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL` and so on), in a task in that of the task: no
secret is in an address. Which files a load means is left to `sources`.
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

from zodiacedge.io.problems import missing, problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer
    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem

    from zodiacedge.errors import LoadProblem

_URI = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+)://(?P<host>[^/]*)/*(?P<path>.*)", re.DOTALL)
_REMOTE = {"s3": "s3", "s3a": "s3", "gs": "gs", "hdfs": "hdfs"}
# No secret before an @, as Arrow would take it: it would stand in reports.
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


class Info(NamedTuple):
    """What a file system tells of a place."""

    is_dir: bool
    is_file: bool
    st_size: int


@dataclass(frozen=True, slots=True)
class Remote:
    """A file or folder below a bucket, or below a host of HDFS; `path` has no slash around it."""

    scheme: str
    host: str
    path: str
    known: Info | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        """Return the URI."""
        return f"{self.scheme}://{self.host}" + (f"/{self.path}" if self.path else "")

    def __truediv__(self, name: str) -> Remote:
        """Return the place of a name in this folder."""
        return Remote(self.scheme, self.host, f"{self.path}/{name}".strip("/"))

    @property
    def name(self) -> str:
        """What it is called in its folder."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> Remote:
        """Its folder."""
        return Remote(self.scheme, self.host, self.path.rpartition("/")[0])

    def absolute(self) -> Remote:
        """Return itself: a URI depends on no working folder."""
        return self

    def stat(self) -> Info:
        """Return what is there, as it was listed, or else as it is now."""
        if self.known:
            return self.known
        with _asking(self):
            return _info(self._system().get_file_info(self._place))

    def is_dir(self) -> bool:
        """Tell whether there is a folder."""
        return self.stat().is_dir

    def is_file(self) -> bool:
        """Tell whether there is a file."""
        return self.stat().is_file

    def exists(self) -> bool:
        """Tell whether there is anything."""
        there = self.stat()
        return there.is_file or there.is_dir

    def iterdir(self, *, below: bool = False) -> Iterator[Remote]:
        """Yield what is in this folder, or also in those below."""
        with _asking(self):
            from pyarrow.fs import FileSelector  # noqa: PLC0415 - see `_system`

            listed = self._system().get_file_info(
                FileSelector(self._place, allow_not_found=True, recursive=below)
            )
        for one in listed:
            name = one.path.removeprefix(self._place).strip("/")
            # An object may be called a//b, which is nothing that a path leads to.
            if name:
                yield replace(self / name, known=_info(one))

    def open(self, _mode: Literal["rb"] = "rb", buffering: Literal[0] = 0) -> io.RawIOBase:  # noqa: ARG002 - as a path's
        """Open a file for reading; each read is a request."""
        with _asking(self):
            return _RemoteStream(self, self._system().open_input_file(self._place))

    def read_bytes(self) -> bytes:
        """Return what a small file holds."""
        with self.open() as stream:
            return stream.readall()

    @property
    def _place(self) -> str:
        """What Arrow calls it."""
        return f"/{self.path}" if self.scheme == "hdfs" else f"{self.host}/{self.path}".rstrip("/")

    def _system(self) -> FileSystem:
        settings = tuple(sorted(one for one in os.environ.items() if one[0].startswith(_VARIABLES)))
        return _system(f"{self.scheme}://{self.host}/", settings)


Place = Path | Remote


def is_uri(text: str) -> bool:
    """Tell whether a text is the URI of a file, and of nothing else."""
    found = _URI.match(text)
    return bool(found and (found["scheme"] in _REMOTE or found["scheme"] == "file"))


def located(text: str) -> Place:
    """Return the place that a path or a URI leads to; whether anything is there is asked for a URI."""
    found = _URI.fullmatch(text)
    if not found:
        return Path(text)
    scheme, host, path = found["scheme"], found["host"], found["path"]
    if scheme == "file" and host in {"", "localhost"}:
        return Path("/" + unquote(path))
    if scheme not in _REMOTE or not _HOST[_REMOTE[scheme]].fullmatch(host):
        raise problem(
            "I021",
            f"{_SECRET.sub('…@', text)} is not at a place that files can be read from",
            "give a path, file:///path, s3://bucket/path, gs://bucket/path or hdfs://host:port/path",
        )
    place = Remote(_REMOTE[scheme], host, path.strip("/"))
    return replace(place, known=place.stat())


def matching(pattern: Place) -> list[Place]:
    """Return what a pattern matches, sorted, so that a load does not depend on the order of a listing."""
    if isinstance(pattern, Path):
        return [Path(m) for m in sorted(glob.glob(str(pattern), recursive=True))]  # noqa: PTH207 - a whole path
    found = [Remote(pattern.scheme, pattern.host, "")]
    for part in pattern.path.split("/"):
        if not glob.has_magic(part):
            found = [one / part for one in found if not (one.known and one.known.is_file)]
            continue
        folders = [one for one in found if one.is_dir()]
        if part == "**":
            inside = [*folders, *(below for one in folders for below in _visible(one))]
            found = list(dict.fromkeys(inside))
        else:
            found = [one for folder in folders for one in folder.iterdir() if _fits(one.name, part)]
    listed = (replace(one, known=one.stat()) for one in found)
    return sorted((one for one in listed if one.exists()), key=str)


def _visible(folder: Remote) -> Iterator[Remote]:
    """Yield what is below a folder, but nothing whose name, or whose folder's, starts with a dot."""
    start = len(folder.path)
    return (one for one in folder.iterdir(below=True) if "/." not in f"/{one.path[start:].strip('/')}")


def _fits(name: str, part: str) -> bool:
    return fnmatchcase(name, part) and (part.startswith(".") or not name.startswith("."))


class _RemoteStream(io.RawIOBase):
    """A file of Arrow's whose failures are problems."""

    def __init__(self, place: Remote, file: NativeFile) -> None:
        self._place = place
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        with _asking(self._place):
            return int(self._file.readinto(buffer))

    def readall(self) -> bytes:
        with _asking(self._place):
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
    """Return the file system of a bucket or host; another environment may lead to another one."""
    import pyarrow as pa  # noqa: PLC0415 - few loads need it, and every import costs start-up time
    from pyarrow import fs  # noqa: PLC0415 - as above

    try:
        # Google's would try for a quarter of an hour.
        return fs.FileSystem.from_uri(root + ("?retry_limit_seconds=60" if root.startswith("gs:") else ""))[0]
    except (pa.ArrowException, ImportError) as error:
        raise _no_system(root, error) from error
    except OSError as error:
        # Others fail when they are asked; this one when its libraries are not there.
        if not root.startswith("hdfs:"):
            raise
        raise _no_system(root, error) from error


def _no_system(root: str, error: Exception) -> LoadProblem:
    return problem(
        "I021",
        f"Arrow has no file system for {root}: {_first_line(error)}",
        "copy the files; or, for hdfs://, name Java and Hadoop: JAVA_HOME, HADOOP_HOME and CLASSPATH",
    )


def _info(one: FileInfo) -> Info:
    from pyarrow.fs import FileType  # noqa: PLC0415 - as above

    return Info(one.type == FileType.Directory, one.type == FileType.File, one.size or 0)


@contextmanager
def _asking(place: Remote) -> Iterator[None]:
    """Turn what Arrow raises into problems."""
    try:
        yield
    except FileNotFoundError as error:
        raise missing(place) from error
    except (OSError, ValueError, NotImplementedError) as error:
        # Arrow's own are kinds of these: something failed, is wrong, or is not to be had.
        text = _first_line(error)
        if _NO_BUCKET.search(text):
            raise missing(place) from error
        said = _AWS.sub(r"\g<said> (\g<code>)", text).partition(" error_info=")[0][:300]
        if _DENIED.search(text):
            raise problem(
                "I002",
                f"{place} may not be read: {said}",
                "credentials come from the environment, such as AWS_ACCESS_KEY_ID; in Spark's tasks too",
            ) from error
        raise problem("I019", f"{place} cannot be read: {said}") from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")
