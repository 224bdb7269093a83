"""Odd and damaged files, and packages that warn: stderr has only our lines."""

import struct
import subprocess
import sys
import zlib

import cv2
import numpy as np
import pytest
from forked import steadyeye

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.data.images.image_file import decode, strip_png_chunks
from steadyeye.models.runtimes.onnx_session import OnnxSession

PICTURE = np.random.default_rng(0).integers(0, 255, (40, 60, 3), np.uint8)
PNG = cv2.imencode(".png", PICTURE)[1].tobytes()
TIFF = cv2.imencode(".tif", PICTURE)[1].tobytes()
WEBP = cv2.imencode(".webp", PICTURE)[1].tobytes()
BMP = cv2.imencode(".bmp", PICTURE)[1].tobytes()
JPEG = cv2.imencode(".jpg", PICTURE)[1].tobytes()
HEADER = 33  # of a PNG: its magic number and IHDR


def chunk(kind, content):
    return b"".join(
        [
            struct.pack(">I", len(content)),
            kind,
            content,
            struct.pack(">I", zlib.crc32(kind + content)),
        ]
    )


def damaged(data, at):
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


def retagged(tiff):
    """The file with an unknown last tag."""
    (at,) = struct.unpack("<I", tiff[4:8])
    (number,) = struct.unpack("<H", tiff[at : at + 2])
    last = at + 2 + 12 * (number - 1)
    return tiff[:last] + struct.pack("<H", 65000) + tiff[last + 2 :]


ODD = {
    "a profile that is none": PNG[:HEADER] + chunk(b"iCCP", b"ICC\0\0xx") + PNG[HEADER:],
    "a gamma": PNG[:HEADER] + chunk(b"gAMA", struct.pack(">I", 30000)) + PNG[HEADER:],
    "a damaged text": PNG[:HEADER] + damaged(chunk(b"tEXt", b"Title\0x"), 9) + PNG[HEADER:],
    "no end": PNG[:-12],
    "a cut end": PNG[:-3],
    "an unknown tag": retagged(TIFF),
}
BROKEN = {
    "cut PNG": (PNG[: len(PNG) // 2], f"cut off after {len(PNG) // 2:,} bytes"),
    "damaged PNG": (damaged(PNG, len(PNG) // 2), "the checksum of its IDAT at byte 33 is wrong"),
    "cut TIFF": (TIFF[: len(TIFF) // 2], "the TIFF 'x': it is damaged or cut off"),
    "cut WebP": (WEBP[: len(WEBP) // 2], "the WebP 'x': it is damaged or cut off"),
    "cut BMP": (BMP[: len(BMP) // 2], "the BMP 'x': it is damaged or cut off"),
    "cut JPEG": (JPEG[: len(JPEG) // 2], "the JPEG 'x': Premature end of JPEG file"),
    "text": (b"hello", "its format is none of JPEG, PNG, "),
    "nothing": (b"", "it is empty"),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_file_is_read_without_a_word(name, capfd):
    np.testing.assert_array_equal(decode(ODD[name], "x"), PICTURE[..., ::-1])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_file_is_an_error_with_its_reason_and_nothing_else(name, capfd):
    data, why = BROKEN[name]
    with pytest.raises(SampleError, match="cannot decode") as error:
        decode(data, "x")
    assert why in str(error.value)
    assert capfd.readouterr() == ("", "")


def test_png_chunks_that_change_no_pixel_are_stripped():
    for extra in (b"tEXt", b"iCCP", b"gAMA", b"eXIf", b"pHYs"):
        assert strip_png_chunks(PNG[:HEADER] + chunk(extra, b"x") + PNG[HEADER:]) == PNG
    with_alpha = PNG[:HEADER] + chunk(b"tRNS", b"\0\1\0\1\0\1") + PNG[HEADER:]
    assert strip_png_chunks(with_alpha) == with_alpha


@pytest.mark.parametrize(
    ("network", "why"),
    [(b"hello", "'x': it is no ONNX file"), (b"\x08\x08", "'x' into ONNX Runtime: ")],
    ids=["no ONNX", "no graph"],
)
def test_a_broken_network_is_an_error_with_its_reason_and_nothing_else(network, why, capfd):
    with pytest.raises(UsageError, match=f"cannot load {why}"):
        OnnxSession(network, "x")
    assert capfd.readouterr() == ("", "")


def test_the_tries_of_a_hub_that_cannot_be_reached_are_not_printed():
    lines = (
        "import logging",
        "from steadyeye.cli.terminal import quiet_packages",
        "quiet_packages()",
        "import huggingface_hub",
        "logging.getLogger('huggingface_hub.utils._http').warning('Retrying in 1s')",
    )
    command = [sys.executable, "-c", "; ".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.slow
def test_the_delegate_of_litert_is_not_printed(test_data):
    pytest.importorskip("ai_edge_litert")
    path = str(test_data / "models" / "mobilenet_v2_1.0_224_quant.tflite")
    lines = (
        "from steadyeye.models.runtimes.litert_network import LiteRtNetwork",
        f"print(LiteRtNetwork({path!r}).width)",
    )
    command = [sys.executable, "-c", "; ".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("1001\n", "")


MODEL = """
import logging
import warnings

import numpy


def classify(images):
    warnings.warn("the weights are\\nold")
    warnings.warn_explicit("of a package", FutureWarning, numpy.__file__, 1)
    logging.getLogger("package").warning("talk of a package")
    logging.getLogger("package").error("it failed")
    return numpy.stack([images.mean((1, 2, 3)), 255 - images.mean((1, 2, 3))], axis=1)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("odd")
    for kind in ("dark", "light"):
        (root / "images" / kind).mkdir(parents=True)
    for i, data in enumerate((*ODD.values(), *(data for data, _ in BROKEN.values()))):
        kind = ("dark", "light")[i % 2]
        (root / "images" / kind / f"{i:02d}.png").write_bytes(data)
    (root / "mine.py").write_text(MODEL)
    return root


def test_a_run_tells_our_lines_and_what_failed(folder):
    words = ("run", "--model", "callable(path='mine:classify')", "--no-cache", "--workers", "1")
    data = ("--data", "image_folder(root='images')", "--on-error", "skip", "--out", "run")
    done = steadyeye(*words, *data, cwd=folder, env={"PYTHONWARNINGS": ""}, check=True)
    lines = set(done.stderr.splitlines())
    (warning,) = (line for line in lines if "UserWarning" in line)
    assert warning.endswith("mine.py:9: UserWarning: the weights are old")
    (counted,) = (line for line in lines if line.startswith("classify@images: 14/14"))
    assert counted.endswith("8 errors")
    assert lines == {warning, counted, "it failed"}
    assert "8 of 14 samples of images not predicted" in done.stdout
