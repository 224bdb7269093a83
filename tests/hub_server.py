"""A server on loopback with the few calls of the Hugging Face Hub by which its files are read."""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import s3_server

REVISION = "0" * 40


@contextmanager
def server(datasets):
    """Serves `datasets`, name → folder, as `hf://datasets/NAME`; gives what was asked of it.

    As the Hub does: the tree of a revision, what is at some paths, and ranges of a file.
    """
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("huggingface_hub")
    asked = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            url = urlsplit(self.path)
            parts = unquote(url.path).strip("/").split("/")
            asked.append((self.command, unquote(url.path), self.headers.get("Range")))
            if parts[:2] == ["api", "datasets"]:
                name, rest = "/".join(parts[2:4]), parts[4:]
                if name not in datasets:
                    return self.answer(404, b"", {"X-Error-Code": "RepoNotFound"})
                return self.about(name, rest, parse_qs(url.query))
            name, inner = "/".join(parts[1:3]), "/".join(parts[5:])
            file = datasets.get(name, "") and datasets[name] / inner
            if parts[0] != "datasets" or parts[3] != "resolve" or not file or not file.is_file():
                return self.answer(404, b"", {"X-Error-Code": "EntryNotFound"})
            return self.content(file)

        do_HEAD = do_GET

        def do_POST(self):
            parts = unquote(urlsplit(self.path).path).strip("/").split("/")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            json_body = "json" in self.headers.get("Content-Type", "")
            paths = (json.loads(body) if json_body else parse_qs(body)).get("paths", [])
            asked.append((self.command, self.path, paths))
            folder = datasets.get("/".join(parts[2:4]))
            if folder is None or parts[4] != "paths-info":
                return self.answer(404, b"", {"X-Error-Code": "RepoNotFound"})
            found = [entry(folder, folder / path) for path in paths if (folder / path).exists()]
            return self.answer(200, json.dumps(found).encode())

        def about(self, name, rest, query):
            folder = datasets[name]
            if rest[:1] == ["tree"]:
                root = folder.joinpath(*rest[2:])
                if not root.is_dir():
                    return self.answer(404, b"", {"X-Error-Code": "EntryNotFound"})
                deep = query.get("recursive", ["false"])[0].lower() == "true"
                files = sorted(root.rglob("*") if deep else root.iterdir())
                return self.answer(200, json.dumps([entry(folder, f) for f in files]).encode())
            if rest and rest[0] != "revision":
                return self.answer(404, b"", {"X-Error-Code": "EntryNotFound"})
            found = {"id": name, "sha": REVISION, "private": False, "siblings": [], "tags": []}
            return self.answer(200, json.dumps(found).encode())

        def content(self, file):
            data = file.read_bytes()
            headers = {
                "ETag": f'"{oid(data)}"',
                "X-Repo-Commit": REVISION,
                "Accept-Ranges": "bytes",
            }
            wanted = self.headers.get("Range")
            if not wanted:
                return self.answer(200, data, headers)
            first, last = wanted.removeprefix("bytes=").split("-")
            end = min(int(last) + 1 if last else len(data), len(data))
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(data)}"
            return self.answer(206, data[int(first) : end], headers)

        def answer(self, status, body, headers=()):
            self.send_response(status)
            for name, value in dict(headers).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_):
            """Silent."""

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{running.server_address[1]}"
    with s3_server.environment(HF_ENDPOINT=url, FSSPEC_HF_ENDPOINT=url, HF_HUB_DISABLE_XET="1"):
        fsspec.config.conf["hf"] = {"endpoint": url, "token": False}
        yield asked
        fsspec.config.conf.pop("hf", None)
    running.shutdown()
    running.server_close()


def entry(folder, path):
    """A file or a folder as the Hub's tree lists it."""
    name = path.relative_to(folder).as_posix()
    if path.is_dir():
        return {"type": "directory", "oid": oid(name.encode()), "size": 0, "path": name}
    data = path.read_bytes()
    return {"type": "file", "oid": oid(data), "size": len(data), "path": name}


def oid(data):
    return hashlib.sha1(data).hexdigest()
