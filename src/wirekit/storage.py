"""Opens files by name: paths of this machine, and URIs of object stores, which are read by ranges.

The file systems of pyarrow access object stores, with the credentials of the environment. pyarrow is loaded for the
first URI; paths do not need it. A failure is an ``OSError`` with the URI as its ``filename`` and one line as its
``strerror``.
"""

from __future__ import annotations

import errno
import io
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from io import BufferedReader
from typing import Any, NamedTuple, TypeVar, cast
from urllib.parse import unquote, urlsplit

from wirekit.errors import Misuse, lacking

SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
"""Schemes of the URIs of object stores and distributed file systems; a ``file`` URI is a path."""
CHUNK = 4 << 20
"""Bytes of a request."""
AHEAD = 6
"""Requests under way or waiting ahead of a reader that reads in order."""
HELD = AHEAD + 4
"""The maximum number of chunks of a file in memory."""
REQUESTS = 16
"""Requests for small files, or for the status of files, that are under way at once, and small files fetched ahead."""
CONNECT_SECONDS, REQUEST_SECONDS, ATTEMPTS = 10, 60, 8
LOGIN_SECONDS = 5
"""How long the first request to Google waits for credentials."""
_WITHOUT_BUCKETS = ("hdfs", "viewfs")
_MAGIC = re.compile(r"[*?\[]")
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://", re.ASCII)
_AWS = re.compile(
    r"AWS Error (\w+)(?: \(HTTP status (\d+)\))? during (\w+) operation: ?(.*?)(?: \(Request ID.*)?$", re.DOTALL
)
_DENIED = ("ACCESS_DENIED", "INVALID_ACCESS_KEY_ID", "SIGNATURE_DOES_NOT_MATCH", "INVALID_CLIENT_TOKEN_ID")
_DENIED_STATUS = ("401", "403")
_NO_KEY = ("NO_SUCH_KEY", "RESOURCE_NOT_FOUND")
_NO_SUCH_RANGE = "416"
_UNREACHABLE = ("NETWORK_CONNECTION", "REQUEST_TIMEOUT")
_GOOGLE = re.compile(r"google::cloud::Status\((\w+): (.*?)(?: error_info=.*)?$", re.DOTALL)
_HADOOP = re.compile(r"Unable to load (libjvm|libhdfs)\b")
_EMPTY_PART = "Empty path component"
"""pyarrow's reason for refusing a path, as ``ArrowInvalid``, in which no folder may have an empty name."""
_NO_TOKEN = "OAuth2 access token"
_LOGINS = {
    _NO_TOKEN: "GOOGLE_APPLICATION_CREDENTIALS, or log in by `gcloud auth application-default login`",
    "DefaultAzureCredential": "AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or log in by `az login`",
}
"""The name of the missing credentials by store, and the places where its client looks for them."""
_LACKING = (errno.ENOENT, errno.ENXIO)
"""The errors of a read of bytes that an object does not have."""
_LONGEST = 300
"""The maximum number of characters of a store's own text in an error."""
_of_thread = threading.local()
"""State of each thread: its attribute ``ahead`` is the thread's ``ReadAhead``, if there is one."""
Result = TypeVar("Result")


class Status(NamedTuple):
    """A file: its name, bytes, and the time of its last change in nanoseconds since the epoch."""

    name: str
    size: int
    mtime_ns: int


def is_remote(name: str | os.PathLike[str]) -> bool:
    """Whether a name is a URI of an object store or a distributed file system.

    Raises:
        Misuse: for a URI of another scheme.
    """
    match = _URI.match(os.fspath(name))
    if match is None or match[1].lower() == "file":
        return False
    if match[1].lower() not in SCHEMES:
        raise Misuse(f"{os.fspath(name)}: unknown scheme {match[1]}://; use {', '.join(SCHEMES)} or file")
    return True


def local(name: str | os.PathLike[str]) -> str:
    """The path of a ``file:`` URI; a path is returned unchanged.

    Java and Spark write such a URI with one slash.

    Raises:
        Misuse: the URI names another host.

    >>> local("file:///tmp/a%20b.pcap"), local("file:/tmp/a.pcap"), local("a%20b.pcap")
    ('/tmp/a b.pcap', '/tmp/a.pcap', 'a%20b.pcap')
    """
    text = os.fspath(name)
    if not text.lower().startswith("file:/"):
        return text
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise Misuse(f"{text} names the host {parts.netloc}; a local file is file:///PATH")
    return unquote(parts.path)


class FileRange(NamedTuple):
    """Bytes of a file: its path on this machine, the offset of the first byte, and their number."""

    path: str
    begin: int
    size: int

    def read(self) -> bytes:
        """The bytes.

        Raises:
            OSError: the file does not exist, or has become too short.
        """
        with open(self.path, "rb") as source:
            source.seek(self.begin)
            data = source.read(self.size)
        if len(data) < self.size:
            raise OSError(errno.EIO, "was truncated while it was read", self.path)
        return data


class Place(NamedTuple):
    """The target of a URI: a file system, a path in it, and the prefix of the path with its counterpart in the URI."""

    system: Any
    path: str
    prefix: str
    head: str

    def name(self, path: str) -> str:
        """The URI of another path of the same bucket."""
        return self.head + path[len(self.prefix) :]


def place_of(uri: str) -> Place:
    """The target of a URI.

    Raises:
        Misuse: without pyarrow, or for a URI that names no bucket.
        OSError: its bucket does not exist, or cannot be reached; not all file systems look for it.
    """
    scheme, _, remainder = uri.partition("://")
    netloc, slash, key = remainder.partition("/")
    scheme = scheme.lower()
    if not netloc and scheme not in _WITHOUT_BUCKETS:
        raise Misuse(f"{uri} names no bucket; pass {scheme}://BUCKET/PATH")
    try:
        with failures(uri):
            system = _file_system(scheme, netloc, tuple(sorted(_settings().items())))
    except ValueError as error:
        if "account name" in str(error):
            form = f"{scheme}://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"
            raise Misuse(f"{uri} names no account; pass {form}") from error
        raise Misuse(f"{uri}: {error}") from error
    except ImportError as error:
        raise (lacking(uri, error) if isinstance(error, ModuleNotFoundError) else Misuse(f"{uri}: {error}")) from error
    # The file system of abfs://CONTAINER@ACCOUNT has the containers at its top, that of hdfs://HOST has files.
    prefix = "" if scheme in _WITHOUT_BUCKETS else netloc.partition("@")[0]
    return Place(system, f"{prefix}{slash}{key}", prefix, uri[: len(scheme) + 3 + len(netloc)])


def _settings() -> dict[str, str]:
    """The values of the environment variables for object stores; if they change, a new file system is needed."""
    return {
        name: value for name, value in os.environ.items() if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "STORAGE_"))
    }


@lru_cache(maxsize=64)
def _file_system(scheme: str, place: str, settings: tuple[tuple[str, str], ...]) -> Any:
    from pyarrow import fs

    if scheme == "s3":
        return _s3(fs, place, dict(settings))
    if scheme in ("gs", "gcs"):
        return _gcs(fs, place)
    return fs.FileSystem.from_uri(f"{scheme}://{place}/")[0]


def s3_endpoint(settings: Mapping[str, str]) -> str | None:
    """The URL of the server that the environment names for S3, None for Amazon's own."""
    return settings.get("AWS_ENDPOINT_URL_S3") or settings.get("AWS_ENDPOINT_URL") or None


def _s3(fs: Any, bucket: str, settings: Mapping[str, str]) -> Any:
    endpoint = s3_endpoint(settings)
    region = settings.get("AWS_REGION") or settings.get("AWS_DEFAULT_REGION")
    if region is None:
        region = "us-east-1" if endpoint else fs.resolve_s3_region(bucket)
    retries = fs.AwsDefaultS3RetryStrategy(max_attempts=ATTEMPTS)  # the standard strategy retries 100 requests in all
    return fs.S3FileSystem(
        region=region,
        endpoint_override=endpoint,
        connect_timeout=CONNECT_SECONDS,
        request_timeout=REQUEST_SECONDS,
        retry_strategy=retries,
        allow_delayed_open=True,  # a small object takes one request instead of three
    )


def _gcs(fs: Any, bucket: str) -> Any:
    """The file system of Google, whose client treats missing credentials as a temporary fault and tries again."""
    try:
        fs.GcsFileSystem(retry_time_limit=timedelta(seconds=LOGIN_SECONDS)).get_file_info(bucket)
    except OSError as error:
        if _NO_TOKEN in str(error):
            raise
    return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=REQUEST_SECONDS))


@contextmanager
def failures(uri: str) -> Iterator[None]:
    """Converts errors of an object store to one line with the URI."""
    try:
        yield
    except Exception as error:
        if not (isinstance(error, OSError) or _is_unclassified(error) or _EMPTY_PART in str(error)):
            raise
        raise _failure(error, uri) from error


def _is_unclassified(error: Exception) -> bool:
    """Whether pyarrow has no class of its own for an error, as for those of Azure."""
    arrow = sys.modules.get("pyarrow")  # no error of pyarrow without it, and most runs do without
    return arrow is not None and type(error) is arrow.ArrowException


def _failure(error: Exception, uri: str) -> OSError:
    text = " ".join(str(error.args[-1] if error.args else error).split())
    match = _AWS.search(text)
    if isinstance(error, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "no such object", uri)
    if _EMPTY_PART in text:
        return OSError(errno.EINVAL, "cannot read an object with // in its name; rename it", uri)
    if match is None:
        return _other_failure(text, getattr(error, "errno", None) or errno.EIO, uri)
    name, status, operation, why = match.groups()
    if name == "NO_SUCH_BUCKET":
        return _no_such_bucket(uri)
    if name in _NO_KEY:
        return FileNotFoundError(errno.ENOENT, "no such object", uri)
    if status == _NO_SUCH_RANGE:
        return OSError(errno.ENXIO, "the object has no such bytes", uri)
    if name in _DENIED or status in _DENIED_STATUS:
        return PermissionError(errno.EACCES, f"access denied ({operation}); see AWS_ACCESS_KEY_ID and AWS_PROFILE", uri)
    if name in _UNREACHABLE:
        return OSError(errno.EHOSTUNREACH, f"the object store does not answer: {why.partition(';')[0]}", uri)
    if (status or "").startswith("5"):
        return OSError(errno.EIO, f"the object store fails: HTTP status {status} ({operation})", uri)
    return OSError(errno.EIO, f"{name} ({operation}): {_shortened(why)}", uri)


def _no_such_bucket(uri: str) -> OSError:
    return FileNotFoundError(errno.ENOENT, f"no such bucket: {uri.split('/')[2]}", uri)


def _other_failure(text: str, number: int, uri: str) -> OSError:
    """The failure of a store other than S3, or one that S3's client does not name."""
    for token, places in _LOGINS.items():
        if token in text:
            return PermissionError(errno.EACCES, f"no credentials; see {places}", uri)
    if "Bucket" in text and "not found" in text:
        return _no_such_bucket(uri)
    hadoop, google = _HADOOP.search(text), _GOOGLE.search(text)
    if hadoop is not None:
        why = f"cannot load {hadoop[1]}; set JAVA_HOME, HADOOP_HOME and CLASSPATH"
        return OSError(errno.EIO, why, uri)
    if google is not None:
        text = f"{google[1]}: {google[2]}"
    return OSError(number, _shortened(text), uri)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def status(name: str) -> Status:
    """The status of a file.

    Raises:
        OSError: the file does not exist, or cannot be reached.
    """
    if not is_remote(name):
        stat = os.stat(local(name))
        return Status(name, stat.st_size, stat.st_mtime_ns)
    place = place_of(name)
    with failures(name):
        info = place.system.get_file_info(place.path)
        if not info.is_file:
            raise FileNotFoundError
    return Status(name, info.size, info.mtime_ns or 0)


def in_parallel(function: Callable[[str], Result], names: Iterable[str]) -> list[Result]:
    """The results of a function for each name; for URIs several calls run at once, because each waits for the store."""
    names = list(names)
    if not any(map(is_remote, names)):
        return list(map(function, names))
    with ThreadPoolExecutor(REQUESTS) as pool:
        return list(pool.map(function, names))


def objects(uri: str) -> list[Status]:
    """The object of a URI, the objects that match a glob, or all objects under a prefix, in the order of their names.

    Raises:
        Misuse: nothing matches the glob.
        OSError: there is nothing of that name, or it cannot be reached.
    """
    place = place_of(uri)
    path, magic = place.path, _MAGIC.search(place.path, len(place.prefix))
    folder = path[: magic.start()].rpartition("/")[0] if magic else path.rstrip("/")
    with failures(uri):
        listed = [place.system.get_file_info(path)] if not magic and not path.endswith("/") else []
        if not (listed and listed[0].is_file):
            import pyarrow.fs

            listed = place.system.get_file_info(pyarrow.fs.FileSelector(folder, recursive=True))
    fits = _matcher(path) if magic else None
    statuses = [
        Status(place.name(each.path), each.size, each.mtime_ns or 0)
        for each in listed
        if each.is_file and (fits is None or fits.fullmatch(each.path))
    ]
    if magic and not statuses:
        try:
            return [status(uri)]  # its name may have these characters
        except FileNotFoundError:
            raise Misuse(f"nothing matches {uri}") from None
    return sorted(statuses)


def _matcher(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression: ``*`` and ``?`` do not match ``/``, ``**`` matches folders."""
    parts = re.split(r"(\*\*/?|\*|\?|\[!?\]?[^]]*\])", pattern)
    pattern_of = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    text = ""
    for part in parts:
        if part in pattern_of:
            text += pattern_of[part]
        elif part.startswith("[") and part.endswith("]"):
            text += "[" + part[1:-1].replace("!", "^", 1).replace("\\", "\\\\") + "]" if part[1] == "!" else part
        else:
            text += re.escape(part)
    return re.compile(text, re.DOTALL)


def open_binary(name: str | os.PathLike[str]) -> BufferedReader:
    """Opens a file for reading; an object of a store is read by ranges, ahead of a reader that reads in order.

    Raises:
        OSError: the file does not exist, or cannot be reached.
    """
    text = os.fspath(name)
    if not is_remote(text):
        return open(local(text), "rb")
    ahead = getattr(_of_thread, "ahead", None)
    file = None if ahead is None else ahead.take(text)
    with failures(text):
        file = _ranged(text) if file is None else file
        return BufferedReader(RangedFile(text, file, file.size(), may_end=ahead is not None), CHUNK)


def _ranged(uri: str) -> Any:
    """A ``pyarrow.NativeFile``."""
    place = place_of(uri)
    with failures(uri):
        return place.system.open_input_file(place.path)


class ReadAhead:
    """Fetches small objects before they are opened, several at once; a context manager.

    Within its block, ``open_binary`` in the same thread returns a fetched object, or raises the error of its request.
    An object that is deleted or replaced by a smaller one while it is read ends there, as a truncated local file does:
    the caller must compare its status afterwards.

    At most ``REQUESTS`` objects of ``HELD`` chunks in all are fetched and not opened yet.

    Args:
        files: names and sizes, in the order in which the files will be opened; large objects and paths are ignored.
    """

    def __init__(self, files: Iterable[tuple[str, int]]) -> None:
        self._waiting = deque(each for each in files if each[1] <= CHUNK and is_remote(each[0]))
        self._fetched: dict[str, tuple[Future[Any], int]] = {}
        self._pool = ThreadPoolExecutor(REQUESTS, thread_name_prefix="wirekit-ahead") if self._waiting else None

    def __enter__(self) -> None:
        _of_thread.ahead = self
        self._fetch()

    def __exit__(self, *_: object) -> None:
        del _of_thread.ahead
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def take(self, name: str) -> Any:
        """The object as a ``pyarrow.NativeFile``, once; None if it was not fetched.

        Raises:
            OSError: the object does not exist, or cannot be reached.
        """
        if name not in self._fetched:
            return None
        for before in list(self._fetched):  # those before it were not opened
            future, _ = self._fetched.pop(before)
            if before == name:
                break
        self._fetch()
        return future.result()

    def _fetch(self) -> None:
        """Requests the next objects."""
        total = sum(size for _, size in self._fetched.values())
        while self._pool is not None and self._waiting and len(self._fetched) < REQUESTS:
            name, size = self._waiting[0]
            if total + size > HELD * CHUNK:
                break
            self._waiting.popleft()
            self._fetched[name] = self._pool.submit(_fetched, name), size
            total += size


def _fetched(uri: str) -> Any:
    """A small object in memory; as a file of the store if it has become large."""
    file = _ranged(uri)
    if file.size() > CHUNK:
        return file
    import pyarrow as pa

    with file, failures(uri):
        return pa.BufferReader(file.read_buffer())


class RangedFile(io.RawIOBase):
    """An object that is read by ranges of ``CHUNK`` bytes; at most ``HELD`` ranges are in memory.

    While a reader reads in order, the next chunks are requested in advance, several at once.

    Args:
        name: its name in errors.
        file: a ``pyarrow.NativeFile``, which reads any range from any thread; it is closed with this object.
        size: size in bytes.
        may_end: whether it ends where bytes are missing because it was deleted or replaced; otherwise this is an error.
    """

    def __init__(self, name: str, file: Any, size: int, *, may_end: bool = False) -> None:
        super().__init__()
        self.name = name
        self.size = size
        self._may_end = may_end
        self._file = file
        self._pool: ThreadPoolExecutor | None = None
        self._chunks: dict[int, Future[bytes]] = {}
        self._position = 0
        self._last = -2  # so that a look at the beginning reads no more

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self.name)
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        chunk, begin = divmod(self._position, CHUNK)
        size = min(len(target), CHUNK - begin, self.size - self._position)
        if size <= 0:
            return 0
        data = memoryview(self._chunk(chunk))[begin : begin + size]
        if len(data) < size and not self._may_end:
            raise OSError(errno.EIO, "shrank while it was read", self.name)
        target[: len(data)] = data
        self._position += len(data)
        return len(data)

    def _chunk(self, number: int) -> bytes:
        in_order, self._last = number == self._last + 1, number
        chunks = range(number, min(number + 1 + AHEAD, -(-self.size // CHUNK)) if in_order else number + 1)
        for old in list(self._chunks):
            if len(self._chunks) + len(chunks) > HELD and old not in chunks:
                self._chunks.pop(old).cancel()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(AHEAD, thread_name_prefix="wirekit-range")
        for each in chunks:
            if each not in self._chunks:
                self._chunks[each] = self._pool.submit(self._fetch, each)
        return self._chunks[number].result()

    def _fetch(self, number: int) -> bytes:
        try:
            with failures(self.name):
                return cast(bytes, self._file.read_at(min(CHUNK, self.size - number * CHUNK), number * CHUNK))
        except OSError as error:
            if error.errno not in _LACKING or not self._may_end:
                raise
            return b""

    def close(self) -> None:
        if not self.closed:
            if self._pool is not None:
                self._pool.shutdown(cancel_futures=True)
            self._chunks.clear()
            self._file.close()
        super().close()
