"""The location of a store in an object store: S3 and compatible servers, Google Cloud Storage, Azure.

Credentials and the endpoint come from the usual environment variables (`AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL` and so on); addresses, stores and messages to other processes contain no secrets.
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

from zodiacedge.store.layout import FileInfo
from zodiacedge.store.location.parallel import in_threads
from zodiacedge.store.problems import no_address, no_library, unreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from obstore.store import ClientConfig, RetryConfig


# The maximum of concurrent requests, and of bytes that wait for a request.
_AT_ONCE = 16
_WAITING_BYTES = 32 << 20
_ADDRESS = re.compile(
    r"(?P<scheme>[a-z0-9]+)://(?P<bucket>[A-Za-z0-9._-]+)(?P<prefix>(/[A-Za-z0-9._=+@~-]+)*)/*"
)
_RETRIES: RetryConfig = {"max_retries": 5, "retry_timeout": timedelta(seconds=60)}
_VARIABLES = ("AWS_", "AZURE_", "GOOGLE_")
_NO_BUCKET = "NoSuchBucket"
# The library asks the metadata service of a cloud if it has no credentials.
_METADATA_SERVICE = re.compile(r"/latest/api/token|/latest/meta-data|/computeMetadata/|/metadata/identity")
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
        return f"{self.scheme}://{self.bucket}" + (f"/{self.prefix}" if self.prefix else "")

    @property
    def options(self) -> dict[str, str] | None:
        """The options whose defaults differ between Delta and this module."""
        options = {"allow_http": str(_plain_http()).lower()}
        if self.scheme == "s3":
            options["aws_region"] = _region()
        return options

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
        """Yield objects in order, each with a function that reads it; later ones are prefetched."""
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
        """Return whether any object exists."""
        with self._client_of() as (obstore, client):
            return any(len(page) for page in obstore.list(client, chunk_size=1))

    def has(self, name: str) -> bool:
        """Return whether an object exists."""
        try:
            with self._client_of(name) as (obstore, client):
                obstore.head(client, name)
        except FileNotFoundError:
            return False
        return True

    def refuse_links(self) -> None:
        """Do nothing: an object is no link."""

    def listed(self, folder: str = "", after: str = "") -> list[FileInfo]:
        """List the objects of a folder and its subfolders by name, from the name after `after`."""
        with self._client_of(folder) as (obstore, client):
            pages = obstore.list(client, folder or None, offset=after or None)
            files = [
                FileInfo(item["path"], item["size"], item["last_modified"].timestamp())
                for page in pages
                for item in page
            ]
        return sorted(files, key=lambda file: file.name)

    # Writing

    def write(self, name: str, data: bytes) -> None:
        """Put an object, or replace it."""
        with self._client_of(name, is_put=True) as (obstore, client):
            obstore.put(client, name, data)

    def put_new(self, name: str, data: bytes) -> bool:
        """Put an object if none of that name exists; return whether the object is this one.

        If a response is lost, the library retries and finds the object, which is then compared.
        """
        try:
            with self._client_of(name, is_put=True) as (obstore, client):
                obstore.put(client, name, data, mode="create", use_multipart=False)
        except FileExistsError:
            return self.read(name) == data
        return True

    def staging(self) -> Objects:
        """Return a staging for objects that are put together."""
        return Objects(self)

    def remove(self, names: Sequence[str], *, in_order: bool) -> None:
        """Remove objects, in order or with one request."""
        if not in_order:
            with self._client_of() as (obstore, client):
                obstore.delete(client, list(names))
            return
        for name in names:
            with suppress(FileNotFoundError), self._client_of(name) as (obstore, client):
                obstore.delete(client, name)

    def sync_delta_log(self) -> None:
        """Do nothing: an object that was put is durable."""

    def lock(self) -> Unlocked:
        """Return a lease that locks nothing: the second writer of a version is refused."""
        return Unlocked()

    @contextmanager
    def _client_of(self, name: str = "", *, is_put: bool = False) -> Iterator[tuple[Any, Any]]:
        """Yield the library and a client; translate its errors into OSErrors or a problem of the store."""
        try:
            import obstore  # noqa: PLC0415 - an optional library
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
            # A put fails like this only if the bucket is missing.
            if is_put or _NO_BUCKET in str(error):
                raise unreachable(self, _reason(error)) from error
            raise FileNotFoundError(errno.ENOENT, "it is not there", str(about)) from error
        except (exceptions.BaseError, OSError, ValueError) as error:
            raise unreachable(about, _reason(error)) from error


class Unlocked:
    """The lease of a writer in a location without locks."""

    held = True

    def release(self) -> None:
        """Do nothing."""


class Objects:
    """Objects that are put concurrently; a vacuum removes those that no commit names."""

    def __init__(self, location: ObjectStoreLocation) -> None:
        """Set the location."""
        self._location = location
        self._waiting: list[tuple[str, bytes]] = []

    def add(self, name: str, data: bytes) -> None:
        """Add an object; put all waiting objects if they are many."""
        self._waiting.append((name, data))
        if sum(len(contents) for _, contents in self._waiting) > _WAITING_BYTES:
            self.sync()

    def sync(self) -> None:
        """Put all waiting objects."""
        waiting, self._waiting = self._waiting, []
        in_threads(lambda item: self._location.write(*item), waiting, len(waiting) - 1)

    def discard(self) -> None:
        """Discard all waiting objects."""
        self._waiting = []


@cache
def _client(location: ObjectStoreLocation, environment: tuple[tuple[str, str], ...]) -> object:
    """Return the client of a location, cached per environment: it selects the server and the user."""
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
    return tuple(sorted(item for item in os.environ.items() if item[0].startswith(_VARIABLES)))


def _region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def _plain_http() -> bool:
    """Return whether the endpoint of the environment is unencrypted, such as a local server."""
    names = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AZURE_STORAGE_ENDPOINT", "GOOGLE_BASE_URL")
    return any(os.environ.get(name, "").startswith("http://") for name in names)


def _reason(error: Exception) -> str:
    """Return the reason in the message of an error."""
    text = str(error)
    if _METADATA_SERVICE.search(text):
        return "there are no credentials in the environment"
    match = _REASON.search(text)
    if match:
        return f"{match['message'].rstrip('.')} ({match['code']})"
    return text.partition("\n")[0].strip()[:300]
