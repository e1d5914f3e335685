"""A store in an object store: S3 and compatible servers, Google Cloud Storage, Azure.

Credentials and the endpoint come from the usual variables of the environment (`AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL` and so on); no secret is in an address, in a store or in what is sent to another process.
"""

from __future__ import annotations

import errno
import os
import re
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from zodiacedge.store.location.base import FileInfo
from zodiacedge.store.location.parallel import in_threads
from zodiacedge.store.problems import no_address, no_library, unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from obstore.store import ClientConfig, RetryConfig


# So many requests are under way at a time; so many bytes wait for them.
_AT_ONCE = 16
_WAITING_BYTES = 32 << 20
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z0-9]+)://(?P<bucket>[A-Za-z0-9._-]+)(?P<prefix>(/[A-Za-z0-9._=+@~-]+)*)/*"
)
_RETRIES: RetryConfig = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_")
_NO_BUCKET = "NoSuchBucket"
# Where a library looks for credentials if none are given: the metadata service of a cloud.
_GUESSED = re.compile(r"/latest/api/token|/latest/meta-data|/computeMetadata/|/metadata/identity")
_REASON = re.compile(r"<Code>(?P<code>[^<]*)</Code>\s*<Message>(?P<message>[^<]*)</Message>")


@dataclass(frozen=True, slots=True)
class ObjectStoreLocation:
    """The objects below a prefix of a bucket."""

    scheme: str
    bucket: str
    prefix: str

    @classmethod
    def of(cls, address: str) -> ObjectStoreLocation:
        """Return the location of an address, `s3://bucket/farm.zodiac`."""
        match = _ADDRESS.fullmatch(address)
        if match is None or {".", ".."} & set(match["prefix"].split("/")):
            raise no_address(address)
        return cls(match["scheme"], match["bucket"], match["prefix"].strip("/"))

    @property
    def shared(self) -> bool:
        """True: there is no lock."""
        return True

    @property
    def uri(self) -> str:
        """The address."""
        return (
            f"{self.scheme}://{self.bucket}/{self.prefix}"
            if self.prefix
            else f"{self.scheme}://{self.bucket}"
        )

    @property
    def options(self) -> Mapping[str, str] | None:
        """The options that Delta would find elsewhere than the requests of this module."""
        found = {"allow_http": str(_plain_http()).lower()}
        if self.scheme == "s3":
            found["aws_region"] = _region()
        return found

    def __str__(self) -> str:
        """Return the address."""
        return self.uri

    def display_name(self, name: str) -> str:
        """Return the address of an object."""
        return f"{self.uri}/{name}"

    # Reading

    def read(self, name: str) -> bytes:
        """Return an object."""
        with self._client_of(name) as (obstore, client):
            return bytes(obstore.get(client, name).bytes())

    def read_all(self, names: Iterable[str]) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Yield objects in order, each with a call that reads it, while the next ones are prefetched."""
        waiting: deque[tuple[str, Future[bytes]]] = deque()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            try:
                for name in names:
                    waiting.append((name, pool.submit(self.read, name)))
                    if len(waiting) > _AT_ONCE:
                        first, future = waiting.popleft()
                        yield first, future.result
                while waiting:
                    first, future = waiting.popleft()
                    yield first, future.result
            finally:
                # A caller that stops early does not wait.
                pool.shutdown(wait=False, cancel_futures=True)

    def exists(self) -> bool:
        """Whether there is any object."""
        with self._client_of() as (obstore, client):
            return any(len(page) for page in obstore.list(client, chunk_size=1))

    def has(self, name: str) -> bool:
        """Whether an object exists."""
        try:
            with self._client_of(name) as (obstore, client):
                obstore.head(client, name)
        except FileNotFoundError:
            return False
        return True

    def refuse_links(self) -> None:
        """Do nothing: an object is no link."""

    def listed(self, folder: str = "", after: str = "") -> list[FileInfo]:
        """List the objects of a folder and those below, by name."""
        with self._client_of(folder) as (obstore, client):
            pages = obstore.list(client, folder or None, offset=after or None)
            found = [
                FileInfo(one["path"], one["size"], one["last_modified"].timestamp())
                for page in pages
                for one in page
            ]
        return sorted(found, key=lambda one: one.name)

    # Writing

    def write(self, name: str, data: bytes) -> None:
        """Put an object, in place of an existing one too."""
        with self._client_of(name, is_put=True) as (obstore, client):
            obstore.put(client, name, data)

    def put_new(self, name: str, data: bytes) -> bool:
        """Put an object where there is none; return whether it is there and ours.

        If an answer is lost, the library asks again and finds the object: its contents tell whose it is.
        """
        try:
            with self._client_of(name, is_put=True) as (obstore, client):
                obstore.put(client, name, data, mode="create", use_multipart=False)
        except FileExistsError:
            return self.read(name) == data
        return True

    def staging(self) -> Objects:
        """Return a staging for objects that belong together."""
        return Objects(self)

    def remove(self, names: Sequence[str], *, in_order: bool) -> None:
        """Remove objects, one after the other or many with one request."""
        if not in_order:
            with self._client_of() as (obstore, client):
                obstore.delete(client, list(names))
            return
        for name in names:
            with suppress(FileNotFoundError), self._client_of(name) as (obstore, client):
                obstore.delete(client, name)

    def sync_log(self, folder: str) -> None:
        """Do nothing: an object that was put is durable."""

    def lock(self) -> Unlocked:
        """Return a lease that locks nothing: the second writer of a version is refused."""
        return Unlocked()

    # Asking

    @contextmanager
    def _client_of(self, name: str = "", *, is_put: bool = False) -> Iterator[tuple[Any, Any]]:
        """Give the library and a client; turn its errors into OSErrors, or into a problem of the store."""
        try:
            import obstore  # noqa: PLC0415 - only who uses it pays for it
            from obstore import exceptions  # noqa: PLC0415
        except ImportError as error:
            raise no_library(self, "obstore", "objects") from error
        about = self.display_name(name) if name else self
        try:
            yield obstore, _client(self, _environment())
        except exceptions.AlreadyExistsError as error:
            raise FileExistsError(errno.EEXIST, "it is there already", str(about)) from error
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise unreachable(about, _reason(error)) from error
        except FileNotFoundError as error:
            # If an object cannot be put because something is missing, it is the bucket.
            if is_put or _NO_BUCKET in str(error):
                raise unreachable(self, _reason(error)) from error
            raise FileNotFoundError(errno.ENOENT, "it is not there", str(about)) from error
        except (exceptions.BaseError, OSError, ValueError) as error:
            raise unreachable(about, _reason(error)) from error


class Unlocked:
    """The lease of a writer where there are no locks."""

    held = True

    def release(self) -> None:
        """Do nothing."""


class Objects:
    """Objects that are put together, several at a time; a vacuum removes those that no commit names."""

    def __init__(self, location: ObjectStoreLocation) -> None:
        """Set the location."""
        self._location = location
        self._waiting: list[tuple[str, bytes]] = []

    def add(self, name: str, data: bytes) -> None:
        """Add an object; when many wait, they are put."""
        self._waiting.append((name, data))
        if sum(len(one) for _, one in self._waiting) > _WAITING_BYTES:
            self.sync()

    def sync(self) -> None:
        """Put all objects that wait."""
        waiting, self._waiting = self._waiting, []
        in_threads(lambda one: self._location.write(*one), waiting, len(waiting) - 1)

    def discard(self) -> None:
        """Forget those that wait."""
        self._waiting = []


@cache
def _client(location: ObjectStoreLocation, environment: tuple[tuple[str, str], ...]) -> object:
    """Return a client of an object store; another environment may mean another store, or another user."""
    from obstore import store  # noqa: PLC0415

    del environment
    options: ClientConfig = {"connect_timeout": "10s", "timeout": "60s", "allow_http": _plain_http()}
    prefix = location.prefix or None
    if location.scheme == "s3":
        return store.S3Store(
            location.bucket, prefix=prefix, region=_region(), client_options=options, retry_config=_RETRIES
        )
    if location.scheme == "gs":
        return store.GCSStore(location.bucket, prefix=prefix, client_options=options, retry_config=_RETRIES)
    return store.AzureStore(location.bucket, prefix=prefix, client_options=options, retry_config=_RETRIES)


def _environment() -> tuple[tuple[str, str], ...]:
    return tuple(sorted(one for one in os.environ.items() if one[0].startswith(_VARIABLES)))


def _region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _plain_http() -> bool:
    """Whether the endpoint of the environment is without encryption, as one on this machine may be."""
    names = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "GOOGLE_BASE_URL")
    return any(os.environ.get(name, "").startswith("http://") for name in names)


def _reason(error: Exception) -> str:
    """Return the sentence of an error that says what is wrong."""
    text = str(error)
    if _GUESSED.search(text):
        return "there are no credentials in the environment"
    match = _REASON.search(text)
    if match:
        return f"{match['message'].rstrip('.')} ({match['code']})"
    return text.partition("\n")[0].strip()[:300]
