"""Compressed Arrow files from others: refused before they are unpacked."""

import hashlib
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import steadyeye as se
from steadyeye import testing
from steadyeye.core.errors import UsageError
from steadyeye.core.storage.arrow_files import is_compressed, read_arrow
from steadyeye.predictions.json_record import read_content, write_record

KINDS = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
@pytest.mark.parametrize("batches", [0, 1, 3])
def test_compression_is_read_from_the_headers(kind, compression, batches):
    table = pa.table({"x": np.arange(30.0), "name": [["a", None]] * 30})
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with KINDS[kind](sink, table.schema, options=options) as writer:
        for batch in table.to_batches(max_chunksize=10)[:batches]:
            writer.write_batch(batch)
    assert is_compressed(sink.getvalue()) == bool(compression and batches)


def test_a_file_is_read_as_it_lies(tmp_path):
    table = pa.table({"x": np.arange(30.0), "name": ["é"] * 30})
    path = tmp_path / "a.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    assert read_arrow(path).equals(table)
    assert read_arrow(path, path.read_bytes()).equals(table)
    content = path.read_bytes()
    for cut in (0, 5, 40, len(content) // 2):
        path.write_bytes(content[:cut])
        with pytest.raises(UsageError, match="no Arrow file"):
            read_arrow(path)


SCRIPT = """
import resource, sys
from steadyeye.predictions.read import read_sealed
from steadyeye.core.errors import UsageError
from steadyeye.core.storage.files import place
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    read_sealed(place(sys.argv[1]))
except UsageError as error:
    print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_shard_that_would_unpack_to_a_gigabyte_is_refused(tmp_path):
    """With a valid checksum, because an attacker can also write the seal."""

    def even(images):
        return np.full((len(images), 3), 1 / 3)

    se.evaluate(even, testing.example_source(2), out=tmp_path / "run")
    (cell,) = (tmp_path / "run" / "cells").iterdir()
    shard, seal = cell / "00000.arrow", cell / "seal.json"
    table = pa.ipc.open_file(shard).read_all()
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(2_500_000 * 100, "f4")), 25_000_000)
    table = table.set_column(table.column_names.index("scores"), "scores", zeros)
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(shard, table.schema, options=options) as writer:
        writer.write_table(table)
    assert shard.stat().st_size < 1_000_000
    record = read_content(seal)
    (entry,) = record["shards"]
    content = shard.read_bytes()
    entry |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    write_record(seal, record)
    del table, zeros
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(cell)], capture_output=True, text=True, check=True
    )
    message, kilobytes = done.stdout.strip().splitlines()
    assert int(kilobytes) < 200_000
    assert "is compressed" in message
