"""ONNX files keep their weights in files beside them and read no other file."""

import ctypes
import os
import struct

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import tiny_onnx
from onnx import TensorProto, helper

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.models.runtimes.onnx_files import data_files, list_contents, list_entries
from steadyeye.models.runtimes.onnx_session import OnnxSession
from steadyeye.runner import short_forms

OPEN_AND_ACCESS = 0x20 | 0x1
IMAGE = np.zeros((32, 32, 3), np.uint8)


class Watch:
    """How often a file was opened or read, by any code of the process, as the kernel tells."""

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.handle = self.libc.inotify_init1(os.O_NONBLOCK)
        assert self.handle >= 0
        assert self.libc.inotify_add_watch(self.handle, os.fsencode(path), OPEN_AND_ACCESS) >= 0

    def count(self):
        try:
            content = os.read(self.handle, 65536)
        except BlockingIOError:
            return 0
        return len(content) // struct.calcsize("iIII")


@pytest.fixture
def net(tmp_path):
    """A network with all its weights in a file beside it, and a class list."""
    folder = tmp_path / "net"
    folder.mkdir()
    (folder / "classes.txt").write_text("\n".join(f"class {i}" for i in range(10)))
    tiny_onnx.save_classifier(folder / "net.onnx", "weights.bin")
    return folder / "net.onnx"


@pytest.fixture
def secret(tmp_path):
    """A file outside the folder of the network, as large as one of its tensors, and its watch."""
    path = tmp_path / "secret"
    path.write_bytes(np.arange(10, dtype=np.float32).tobytes())
    watch = Watch(path)
    yield path, watch
    os.close(watch.handle)


def read(net):
    options = {"path": str(net), "classes": str(net.parent / "classes.txt")}
    return plugins.build("models", Spec("onnx", options))


WHOLE = {"offset": None, "length": 40}


def link(net, path):
    (net.parent / "link.bin").symlink_to(path)
    return "link.bin"


def link_folder(net, path):
    (net.parent / "inner").symlink_to(path.parent, target_is_directory=True)
    return f"inner/{path.name}"


ATTACKS = {
    "absolute": lambda net, path: str(path),
    "above": lambda net, path: f"../{path.name}",
    "above and back": lambda net, path: f"../net/../{path.name}",
    "a link": link,
    "a linked folder": link_folder,
}


@pytest.mark.parametrize("way", ATTACKS)
def test_weights_outside_of_the_folder_are_not_read(way, net, secret, monkeypatch):
    path, watch = secret
    tiny_onnx.set_entries(net, location=ATTACKS[way](net, path), **WHOLE)
    sessions = []
    monkeypatch.setattr(ort, "InferenceSession", lambda *_, **__: sessions.append(1))
    for build in (
        lambda: read(net),
        lambda: short_forms.expand_model(str(net)),
        lambda: data_files(net),
    ):
        with pytest.raises(UsageError, match=r"net\.onnx.*next to it") as error:
            build()
        assert len(str(error.value).splitlines()) == 1
    assert not sessions
    assert watch.count() == 0


def test_the_watch_sees_what_is_read(net, secret):
    path, watch = secret
    beside = net.parent / "bias.bin"
    beside.hardlink_to(path)
    tiny_onnx.set_entries(net, location="bias.bin", **WHOLE)
    assert data_files(net) == (beside, net.parent / "weights.bin")
    assert watch.count() == 0
    model = read(net)
    assert watch.count() > 0
    # the bias is what the file holds: without it the scores of a black image are the same
    assert model([IMAGE]).argmax() == 9


def test_an_address_in_memory_is_no_file_beside(net):
    place = net.parent / "*"
    place.mkdir()
    (place / "_ORT_MEM_ADDR_").mkdir()
    (place / "_ORT_MEM_ADDR_" / "*").write_bytes(bytes(64))
    tiny_onnx.set_entries(net, location="*/_ORT_MEM_ADDR_/*", offset=8, length=40)
    with pytest.raises(UsageError, match=r"tensor 'bias'.*not next to it"):
        read(net)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"location": "none.bin"}, "which is no file next to it; copy it too"),
        ({"location": ""}, "no file next to it"),
        ({"location": "."}, "no file next to it"),
        ({"location": None}, "no file next to it"),
        ({"offset": 4_000}, "its data end at byte 4,040 of 'weights.bin', which has 1,[0-9]*"),
        ({"offset": 10**18}, "its data end at byte"),
        ({"length": 10**18}, "its data end at byte"),
        ({"offset": 10**30}, "which is no number of bytes"),
        ({"offset": -4}, "which is no number of bytes"),
        ({"length": -4}, "which is no number of bytes"),
        ({"length": "1e3"}, "which is no number of bytes"),
        ({"length": ""}, "which is no number of bytes"),
        ({"length": "٣"}, "which is no number of bytes"),
    ],
)
def test_absent_weights_are_named_by_tensor(entries, words, net, monkeypatch):
    tiny_onnx.set_entries(net, **entries)
    monkeypatch.setattr(ort, "InferenceSession", lambda *_, **__: pytest.fail("opened"))
    with pytest.raises(UsageError, match=rf"net\.onnx', tensor 'bias': .*{words}"):
        read(net)


def test_a_file_of_weights_that_was_cut_is_too_short(net):
    beside = net.parent / "weights.bin"
    beside.write_bytes(beside.read_bytes()[:-1])
    with pytest.raises(UsageError, match=r"of 'weights\.bin'.* copy that file again"):
        read(net)


def test_the_weights_next_to_count_for_the_fingerprint(net):
    before, beside = read(net), net.parent / "weights.bin"
    content = bytearray(beside.read_bytes())
    content[3] ^= 1
    beside.write_bytes(content)
    assert list_contents(net) == [net.read_bytes(), bytes(content)]
    assert read(net).fingerprint != before.fingerprint


def test_links_as_stores_of_downloads_keep_them_are_followed(net, tmp_path):
    snapshot, blobs = tmp_path / "snapshots" / "1", tmp_path / "blobs"
    snapshot.mkdir(parents=True)
    blobs.mkdir()
    for name in ("net.onnx", "weights.bin"):
        (net.parent / name).rename(blobs / f"blob-{name}")
        (snapshot / name).symlink_to(f"../../blobs/blob-{name}")
    assert data_files(snapshot / "net.onnx") == (snapshot / "weights.bin",)
    # a link to elsewhere is still refused
    (snapshot / "weights.bin").unlink()
    (tmp_path / "other").write_bytes(bytes(4096))
    (snapshot / "weights.bin").symlink_to(tmp_path / "other")
    with pytest.raises(UsageError, match="outside of"):
        data_files(snapshot / "net.onnx")


def test_a_model_in_memory_has_no_files(net):
    content = net.read_bytes()
    with pytest.raises(UsageError, match="'it' keeps its weights in other files"):
        OnnxSession(content, "it")


def tensor(name):
    proto = onnx.TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[1])
    proto.data_location = TensorProto.EXTERNAL
    for key, value in (("location", f"{name}.bin"), ("offset", "0"), ("length", "4")):
        proto.external_data.add(key=key, value=value)
    return proto


def graph(name, nodes=()):
    """A graph with a weight, a sparse weight, and nodes that hold tensors and graphs."""
    sparse = helper.make_sparse_tensor(tensor(f"{name}-values"), tensor(f"{name}-indices"), [4])
    own = [helper.make_node("Constant", [], ["a"], value=tensor(f"{name}-constant")), *nodes]
    own.append(helper.make_node("Constant", [], ["b"], sparse_value=sparse))
    return helper.make_graph(own, name, [], [], [tensor(name)], sparse_initializer=[sparse])


def test_tensors_are_those_that_the_library_of_onnx_reads():
    inner = helper.make_node("Loop", [], ["c"], body=graph("body"))
    branches = {"then_branch": graph("then", [inner]), "else_branch": graph("else")}
    branch = helper.make_node("If", [], ["d"], **branches)
    several = helper.make_node("Own", [], ["e"], domain="own", parts=[tensor("p"), tensor("q")])
    graphs = helper.make_node("Own", [], ["f"], domain="own", parts=[graph("r"), graph("s")])
    model = helper.make_model(graph("main", [branch, several, graphs]))
    function = helper.make_function("own", "F", [], ["g"], [branch], [helper.make_opsetid("", 17)])
    function.attribute_proto.append(helper.make_attribute("default", tensor("default")))
    model.functions.append(function)
    model.training_info.add(initialization=graph("start"), algorithm=graph("step"))
    content = model.SerializeToString()
    expected = {t.name for t in walk(onnx.load_from_string(content))}
    entries = list_entries(content, "it")
    assert {name for name, _ in entries} == expected
    assert len(expected) == 35
    assert all(e == {"location": f"{n}.bin", "offset": "0", "length": "4"} for n, e in entries)


def walk(message):
    """Every tensor below a message, by the descriptors of ONNX's own library."""
    if isinstance(message, onnx.TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                yield from walk(part)


def test_a_tag_of_too_many_bits_hides_no_tensor():
    """Protocol buffers drop the bits beyond 32, and so read the field of a graph."""
    inner = graph("main").SerializeToString()
    tag = (1 << 32) | 7 << 3 | 2
    prefix = bytes([*((tag >> shift & 127) | 128 for shift in (0, 7, 14, 21)), tag >> 28 & 127])
    size = len(inner)
    content = prefix + bytes([size & 127 | 128, size >> 7]) + inner
    assert size < 2**14
    with pytest.raises(UsageError, match="no ONNX file, or damaged"):
        list_entries(content, "it")


def test_a_truncated_or_foreign_file_is_no_onnx_file(net):
    content = net.read_bytes()
    assert len(list_entries(content, "it")) == 3
    for bad in (b"nothing", content[:-1], b"\x3a", b"\xff" * 11, b"\x3b" + content):
        with pytest.raises(UsageError, match="'it': it is no ONNX file, or damaged"):
            list_entries(bad, "it")
