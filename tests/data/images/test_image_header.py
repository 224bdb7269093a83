"""Sizes by the header compared with decoding, and files that declare more than they have."""

import io
import resource
import struct
import zlib

import cv2
import numpy as np
import pytest
from PIL import Image as Pillow
from PIL import ImageOps

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.data.images import image_file, image_header

HEIGHT, WIDTH = 37, 53
PIXELS = np.random.default_rng(0).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
SAVED = {
    "a.jpg": {},
    "progressive.jpg": {"progressive": True},
    "a.png": {},
    "a.bmp": {},
    "a.gif": {},
    "a.tif": {},
    "packed.tif": {"compression": "tiff_lzw"},
    "big.tif": {"big_tiff": True},
    "lossy.webp": {},
    "lossless.webp": {"lossless": True},
    "described.webp": {"exif": b"Exif\0\0"},
    "a.ppm": {},
    "a.avif": {},
}


def read_peak():
    """The most memory, in bytes, that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def save(folder, name, options):
    Pillow.fromarray(PIXELS).save(folder / name, **options)
    return folder / name


@pytest.mark.parametrize("name", SAVED)
def test_the_header_says_the_size_that_decoding_gives(name, tmp_path):
    path = save(tmp_path, name, SAVED[name])
    image = image_file.read(path)
    assert image.shape == (HEIGHT, WIDTH, 3)
    assert image.flags.c_contiguous
    if not name.endswith((".jpg", ".png")):
        assert image_header.read_size(path.read_bytes()) == (HEIGHT, WIDTH)
    assert image_file.size(path) == (HEIGHT, WIDTH)
    if not name.endswith((".jpg", ".webp", ".avif", ".gif")):
        np.testing.assert_array_equal(image, PIXELS)


@pytest.mark.parametrize(
    ("suffix", "channels"),
    [(suffix, channels) for suffix in ("bmp", "png", "tiff", "webp") for channels in (1, 3, 4)]
    + [("ppm", 3), ("gif", 3), ("pgm", 1), ("pbm", 1)],
)
def test_colours_are_those_of_opencv_turned_round(suffix, channels):
    picture = np.ascontiguousarray(np.repeat(PIXELS, 2, axis=2)[..., :channels])
    data = cv2.imencode(f".{suffix}", picture)[1].tobytes()
    expected = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)[..., ::-1]
    np.testing.assert_array_equal(image_file.decode(data, "a"), expected)


def test_a_size_above_16_bits_and_upside_down_is_read(tmp_path):
    Pillow.new("L", (3, 70_000)).save(tmp_path / "a.bmp")
    data = bytearray((tmp_path / "a.bmp").read_bytes())
    assert image_header.read_size(bytes(data)) == (70_000, 3)
    struct.pack_into("<i", data, 22, -70_000)
    assert image_header.read_size(bytes(data)) == (70_000, 3)


def promise_bmp(width, height):
    head = struct.pack("<2sIHHI", b"BM", 65_590, 0, 0, 54)
    # run-length encoding: what is not said stays black
    return head + struct.pack("<IiiHHIIiiII", 40, width, height, 1, 8, 1, 0, 1, 1, 0, 0) + b"\0\1"


def promise_gif(width, height):
    return (
        b"GIF89a"
        + struct.pack("<HHBBB", width, height, 0x80, 0, 0)
        + bytes(6)
        + struct.pack("<cHHHHB", b",", 0, 0, width, height, 0)
        + b"\2\2\x4c\1\0;"
    )


def promise_png(width, height):
    def chunk(kind, content):
        sum_ = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", sum_)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(1000))
    chunks = {b"IHDR": header, b"IDAT": pixels, b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*pair) for pair in chunks.items())


def promise_tiff(width, height, tile=0):
    tags = [(256, width), (257, height), (258, 8), (259, 1), (262, 1), (277, 1)]
    tags += [(322, tile), (323, tile), (324, 8), (325, 1)] if tile else [(273, 8), (278, height)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(64)


def promise_webp(width, height):
    sides = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF\x40\0\0\0WEBPVP8X\x0a\0\0\0" + bytes(4) + sides + bytes(64)


def promise_pnm(width, height):
    return b"P5 # a comment\n%d %d\n255\n" % (width, height)


PROMISES = {
    "BMP": promise_bmp,
    "GIF": promise_gif,
    "PNG": promise_png,
    "TIFF": promise_tiff,
    "WebP": promise_webp,
    "PNM": promise_pnm,
}


@pytest.mark.parametrize("data", [b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n\0\0", b"BM", b"GIF89a"])
def test_a_header_that_is_cut_off_says_no_size(data, tmp_path):
    (tmp_path / "cut").write_bytes(data)
    for read in (image_file.read, image_file.size):
        with pytest.raises(SampleError, match="cannot decode the"):
            read(tmp_path / "cut")


@pytest.mark.parametrize("form", PROMISES)
def test_a_few_bytes_that_promise_gigapixels_are_refused_by_their_header(form, tmp_path):
    data = PROMISES[form](65_535, 65_535)
    if form != "PNG":
        assert image_header.name_format(data) == form
    (tmp_path / "bomb").write_bytes(data)
    for read in (image_file.read, lambda path: image_file.decode(path.read_bytes(), str(path))):
        with pytest.raises(SampleError, match="states 4,294,836,225 pixels, over 134,217,728"):
            read(tmp_path / "bomb")


@pytest.mark.parametrize("form", PROMISES)
def test_the_limit_is_the_user_s_to_set(form, monkeypatch):
    data = PROMISES[form](100, 100)
    monkeypatch.setenv(image_file.VARIABLE, "9999")
    with pytest.raises(SampleError, match=f"over 9,999: .* set {image_file.VARIABLE} to a high"):
        image_file.decode(data, "small")
    monkeypatch.setenv(image_file.VARIABLE, "10000")
    with pytest.raises(SampleError, match="cannot decode"):
        image_file.decode(data, "small")
    for text in ("many", "-1", "0", "1" * 5000, "²"):
        monkeypatch.setenv(image_file.VARIABLE, text)
        with pytest.raises(
            UsageError, match="is not a number of pixels; give one, such as 134217728"
        ):
            image_file.decode(data, "small")


def test_a_tile_larger_than_its_picture_counts():
    data = promise_tiff(16, 16, tile=65_536)
    assert image_header.read_size(data) == (16, 16)
    with pytest.raises(SampleError, match="states 4,294,967,296 pixels"):
        image_file.decode(data, "tiled")


def test_a_picture_with_thousands_of_scans_is_refused(tmp_path):
    path = save(tmp_path, "a.jpg", {"progressive": True})
    data = path.read_bytes()
    scan = data[data.rindex(b"\xff\xda") : -2]
    with pytest.raises(SampleError, match=r"has 2,\d\d\d scans, over 500 for its 1,961 p"):
        image_file.decode(data[:-2] + scan * 2000 + data[-2:], "slow")


def test_fewer_scans_are_read_of_a_larger_picture(monkeypatch):
    monkeypatch.setattr(image_file, "MOST_SCANNED", 100 * 40 * 40)
    whole = io.BytesIO()
    Pillow.new("L", (40, 40)).save(whole, "JPEG", progressive=True)
    data = whole.getvalue()
    scan, scans = data[data.rindex(b"\xff\xda") : -2], image_header.count_scans(data)
    most = data[:-2] + scan * (100 - scans) + data[-2:]
    assert image_file.check_pixels(most, "slow") == "JPEG"
    with pytest.raises(SampleError, match="has 101 scans, over 100 for its 1,600 pixels; save it"):
        image_file.check_pixels(most[:-2] + scan + data[-2:], "slow")


def test_scan_markers_outside_the_image_data_are_not_counted(tmp_path):
    data = save(tmp_path, "a.jpg", {"progressive": True}).read_bytes()
    note = b"\xff\xe1" + (2 + 1400).to_bytes(2, "big") + b"\xff\xda" * 700
    film = b"\x00\xff\xda" * 700  # as phones write one behind a photo
    whole = data[:2] + note + data[2:] + film
    assert image_header.count_scans(whole) == data.count(b"\xff\xda") > 5
    assert image_file.decode(whole, "phone").shape == PIXELS.shape


def test_a_side_longer_than_libpng_reads_is_reported():
    with pytest.raises(SampleError, match=r"is 1,000,001 pixels long; .* cut it into parts"):
        image_file.decode(promise_png(1, 1_000_001), "long")


def test_a_file_larger_than_any_picture_is_not_read(tmp_path):
    path = tmp_path / "a.png"
    with path.open("wb") as file:
        file.truncate(2**31)
    with pytest.raises(SampleError, match="larger than the largest image that is read"):
        image_file.read(path)


def test_formats_that_are_not_read_are_named(tmp_path):
    data = cv2.imencode(".jp2", PIXELS)[1].tobytes()
    for content, why in ((data, "format is none of JPEG, PNG"), (b"", "it is empty")):
        with pytest.raises(SampleError, match=why):
            image_file.decode(content, "other")


@pytest.mark.slow
def test_bytes_packed_a_thousandfold_are_not_kept():
    png = promise_png(16, 16)
    at = png.index(b"IDAT") - 4
    packed = zlib.compress(bytes(2**28))
    chunk = struct.pack(">I", len(packed)) + b"IDAT" + packed
    # without its end, the picture's bytes are unpacked to see whether they are whole
    cut = png[:at] + chunk + struct.pack(">I", zlib.crc32(chunk[4:]))
    before = read_peak()
    image_file.strip_png_chunks(cut)
    assert read_peak() - before < 2**26


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_pixels_are_read_as_stored_and_a_tiff_file_as_it_is_turned(form, turn, tmp_path):
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[:20, :30], pixels[20:, 30:], pixels[:20, 30:] = (250, 0, 0), (0, 0, 250), (0, 250, 0)
    exif = Pillow.Exif()
    exif[0x0112] = turn
    path = tmp_path / f"x.{form.lower()}"
    options = {"lossless": True} if form == "WEBP" else {"quality": 100, "subsampling": 0}
    Pillow.fromarray(pixels).save(path, form, exif=exif, **({} if form == "TIFF" else options))
    turned = np.asarray(ImageOps.exif_transpose(Pillow.open(path)))
    read = image_file.read(path)
    expected = turned if form == "TIFF" else pixels
    assert image_file.size(path) == read.shape[:2] == expected.shape[:2]
    assert np.abs(read.astype(int) - expected).max() < 12
