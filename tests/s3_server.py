"""A real S3 server on loopback, and a server before it that fails on purpose."""

import http.client
import os
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

KEYS = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>on purpose</Message></Error>"


@contextmanager
def server():
    """The address of moto's S3 server, also put into the environment."""
    moto = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    url = f"http://{host}:{port}"
    with environment(AWS_ENDPOINT_URL=url, **KEYS):
        yield url
    running.stop()


@contextmanager
def environment(**values):
    """The environment with values in it, and connections made anew."""
    from steadyeye.storage import stores

    before = dict(os.environ)
    os.environ.update(values)
    forget(stores)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        forget(stores)


def forget(stores):
    import fsspec

    stores._connected.cache_clear()
    fsspec.AbstractFileSystem.clear_instance_cache()
    if "s3fs" in sys.modules:
        sys.modules["s3fs"].S3FileSystem.clear_instance_cache()


def client(url):
    import boto3

    return boto3.client("s3", endpoint_url=url)


def bucket(url, name):
    client(url).create_bucket(Bucket=name)
    return f"s3://{name}"


def drop(url, name):
    """Removes a bucket with all that is in it; returns what was."""
    s3, held = client(url), {}
    while True:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=name)
        keys = [each["Key"] for page in pages for each in page.get("Contents", [])]
        for key in keys:
            held[key] = s3.get_object(Bucket=name, Key=key)["Body"].read()
            s3.delete_object(Bucket=name, Key=key)
        try:
            s3.delete_bucket(Bucket=name)
        except s3.exceptions.ClientError as error:
            # something was written meanwhile
            if error.response["Error"]["Code"] != "BucketNotEmpty":
                raise
        else:
            return held


@contextmanager
def failing(url, fails, variable="AWS_ENDPOINT_URL"):
    """A server before `url`; `fails(method, path, n)` is asked for each request.

    It answers None to pass it on, a status to fail with, `"drop"` to hang up at once, `"half"` to
    hang up in the middle of the answer. `n`: the requests for that method and path so far, from 0.
    `variable`: of the environment, where the address of the server is looked for.
    """
    counts, lock = {}, threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length)
            key = (self.command, self.path.partition("?")[0])
            with lock:
                number = counts[key] = counts.get(key, -1) + 1
            fate = fails(*key, number)
            if fate == "drop":
                self.close_connection = True
                self.connection.close()
                return
            if isinstance(fate, int):
                codes = {403: "AccessDenied", 500: "InternalError", 503: "SlowDown"}
                self.answer(fate, {}, ERROR.format(codes[fate]).encode())
                return
            target = http.client.HTTPConnection(urlsplit(url).netloc)
            target.request(self.command, self.path, body, dict(self.headers))
            found = target.getresponse()
            self.answer(found.status, dict(found.getheaders()), found.read(), fate == "half")

        def answer(self, status, headers, body, half=False):
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() not in {"content-length", "transfer-encoding", "connection"}:
                    self.send_header(name, value)
            given = headers.get("Content-Length") if self.command == "HEAD" else len(body)
            self.send_header("Content-Length", str(given or len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body[: len(body) // 2] if half else body)
            if half:
                self.wfile.flush()
                self.close_connection = True
                self.connection.close()

        do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = do_PATCH = handle_any

        def log_message(self, *_):
            """Silent."""

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{proxy.server_address[1]}"
    with environment(**{variable: address}):
        yield counts
    proxy.shutdown()
    proxy.server_close()
