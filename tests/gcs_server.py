"""A server on loopback that speaks Google Cloud Storage's JSON API, for gcsfs to talk to."""

import json
import urllib.request
from contextlib import contextmanager

import pytest
import s3_server


@contextmanager
def server():
    """The address of the emulator, also put into the environment."""
    emulator = pytest.importorskip("gcp_storage_emulator.server")
    pytest.importorskip("google.auth")
    # gcsfs asks by gRPC, which the emulator does not speak, of which kind a bucket is
    quick = {"GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false", "FSSPEC_GS_TOKEN": "anon"}
    running = emulator.create_server("127.0.0.1", 0, in_memory=True)
    running.start()
    port = running._api._httpd.server_address[1]
    url = f"http://127.0.0.1:{port}"
    with s3_server.environment(STORAGE_EMULATOR_HOST=url, **quick):
        import fsspec

        gcsfs = pytest.importorskip("gcsfs")

        fsspec.config.conf["gs"] = {"token": "anon"}
        yield url
        fsspec.config.conf.pop("gs", None)
        gcsfs.GCSFileSystem.clear_instance_cache()
    running.stop()


def bucket(url, name):
    request(url, "POST", "/storage/v1/b?project=p", {"name": name})
    return f"gs://{name}"


def request(url, method, path, content=None):
    data = None if content is None else json.dumps(content).encode()
    asked = urllib.request.Request(
        f"{url}{path}", data, {"Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(asked) as answer:
        return answer.read()
