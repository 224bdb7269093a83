"""Videos whose frames have more pixels than are read."""

import encoded
import pytest

from steadyeye.core.errors import UsageError
from steadyeye.data.images.image_file import VARIABLE
from steadyeye.data.sources.every_frame import every_frame
from steadyeye.data.video import video_index


@pytest.mark.parametrize(("name", "codec"), [("a.mp4", "libx264"), ("a.avi", "mpeg4")])
def test_frames_above_the_limit_are_refused_before_they_are_decoded(
    name, codec, tmp_path, monkeypatch
):
    path = encoded.write(tmp_path / name, codec, count=12)
    monkeypatch.setenv(VARIABLE, "6143")
    with pytest.raises(UsageError, match=f"96 × 64 pixels, over 6,143; .* set {VARIABLE}"):
        every_frame(str(path))
    monkeypatch.setenv(VARIABLE, "6144")
    assert len(every_frame(str(path))) == 12


def test_a_decoder_refuses_what_its_container_did_not_say(tmp_path, monkeypatch):
    path = encoded.write(tmp_path / "a.avi", "mjpeg", "yuvj420p", count=3)
    content = path.read_bytes()
    sides = (64).to_bytes(2, "big") + (96).to_bytes(2, "big")
    larger = (2000).to_bytes(2, "big") + (3000).to_bytes(2, "big")
    assert content.count(sides) == 3
    # the first frame stays, from which the container's size is read
    first = content.index(sides) + 4
    path.write_bytes(content[:first] + content[first:].replace(sides, larger))
    monkeypatch.setenv(VARIABLE, "10000")
    source = every_frame(str(path))
    assert source[0].image().shape == (64, 96, 3)
    assert video_index.index(path)
    for number in range(1, len(source)):
        with pytest.raises(UsageError, match="cannot decode frame"):
            source[number].image()
