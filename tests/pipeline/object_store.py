"""An object store for tests: moto's S3 server in a process of its own, on a free port of this machine."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BUCKET = "captures"
MANY, MANY_KEYS = "many", 10_000
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}
SERVER = f"""
import sys
from moto.s3.models import s3_backends
from moto.server import main
backend = s3_backends["123456789012"]["aws"]
for name in ("{BUCKET}", "{MANY}"):
    backend.create_bucket(name, "us-east-1")
for number in range({MANY_KEYS}):
    backend.put_object("{MANY}", f"logs/{{number:05}}.txt", b"")
main(["-H", "127.0.0.1", "-p", sys.argv[1]])
"""


class ObjectStore:
    """A running server.

    Attributes:
        endpoint: its URL.
    """

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint

    @property
    def environment(self) -> dict[str, str]:
        """What clients need to reach it."""
        return {**KEYS, "AWS_ENDPOINT_URL": self.endpoint}

    def system(self) -> Any:
        from pyarrow import fs

        keys = {"access_key": "testing", "secret_key": "testing", "region": "us-east-1"}
        return fs.S3FileSystem(endpoint_override=self.endpoint, allow_bucket_creation=True, **keys)

    def upload(self, key: str, content: bytes | Path) -> str:
        """Puts an object into the bucket; gives its URI."""
        with self.system().open_output_stream(f"{BUCKET}/{key}", compression=None) as stream:
            stream.write(content if isinstance(content, bytes) else content.read_bytes())
        return f"s3://{BUCKET}/{key}"

    def names(self, prefix: str) -> list[str]:
        """The keys under a prefix."""
        from pyarrow import fs

        infos = self.system().get_file_info(fs.FileSelector(f"{BUCKET}/{prefix}", recursive=True, allow_not_found=True))
        return sorted(each.path.removeprefix(f"{BUCKET}/{prefix}/") for each in infos if each.is_file)

    def fetched(self, prefix: str, to: Path) -> Path:
        """A copy of a prefix in a directory."""
        for name in self.names(prefix):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            with self.system().open_input_file(f"{BUCKET}/{prefix}/{name}") as file:
                (to / name).write_bytes(file.readall())
        return to

    @contextmanager
    def faulty(self, fault: Callable[[str, str], int | None]) -> Iterator[str]:
        """A server in front of this one that answers some requests itself; gives its URL.

        Args:
            fault: gets method and path of a request; gives the status to answer with, None to pass the request on.
        """

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            endpoint = self.endpoint

            def answer(self) -> None:
                body = self._body()
                status = fault(self.command, self.path)
                if status is not None:
                    self._send(status, [], b"")
                    return
                request = urllib.request.Request(self.endpoint + self.path, body or None, method=self.command)
                for name, value in self.headers.items():
                    if name.lower() != "transfer-encoding":
                        request.add_header(name, value)
                try:
                    with urllib.request.urlopen(request) as response:
                        self._send(response.status, response.headers.items(), response.read())
                except urllib.error.HTTPError as error:
                    self._send(error.code, error.headers.items(), error.read())

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer

            def _body(self) -> bytes:
                if self.headers.get("Transfer-Encoding", "") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def _send(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
                self.send_response_only(status)
                for name, value in headers:
                    if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                        self.send_header(name, value)
                length = dict(headers).get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
                self.send_header("Content-Length", length)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """While it lasts, the store grants nothing to the keys of ``environment``."""
        self._authorise("0")
        try:
            yield
        finally:
            self._authorise("inf")

    def _authorise(self, after: str) -> None:
        headers = {"Content-Type": "text/plain"}
        request = urllib.request.Request(f"{self.endpoint}/moto-api/reset-auth", after.encode(), headers)
        urllib.request.urlopen(request).read()


@contextmanager
def object_store(log: Path) -> Iterator[ObjectStore]:
    """Starts a server, and ends it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        log.open("wb") as file,
        subprocess.Popen([sys.executable, "-c", SERVER, str(port)], stdout=file, stderr=file) as server,
    ):
        try:
            endpoint = f"http://127.0.0.1:{port}"
            until = time.monotonic() + 60
            while True:
                try:
                    urllib.request.urlopen(f"{endpoint}/moto-api/").read()
                    break
                except OSError:
                    assert server.poll() is None, log.read_text()
                    assert time.monotonic() < until, log.read_text()
                    time.sleep(0.1)
            yield ObjectStore(endpoint)
        finally:
            server.terminate()
