"""Frames that are prepared while the model is at the one before: the same, in order, one ahead."""

import time

import numpy as np
import pytest
from encoded import picture, write

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.watch.feeds import open_feed
from steadyeye.watch.frames import FrameCounts, LiveFrame
from steadyeye.watch.measures import ShrunkFrames
from steadyeye.watch.prepare_ahead import PrepareAhead


def take_all(reader):
    frames = []
    while not reader.is_over:
        frames += filter(None, [reader.take(1.0)])
    return frames


class ListFeed:
    """A feed of images; an error among them is raised where the frame is decoded, or taken."""

    status, mark, has_timestamps = "reading", 0, True

    def __init__(self, images):
        self.images, self.counts = list(images), FrameCounts()
        self.is_over = self.is_closed = False

    def take(self, seconds):
        if not self.images:
            self.is_over = True
            return None
        image, number = self.images.pop(0), self.counts.received
        if type(image) is UsageError:
            raise image
        self.counts.received += 1
        return LiveFrame(number, number / 10, 0, lambda: decode(image))

    def close(self):
        self.is_closed = True


def turn(image):
    return image[::-1]


def decode(image):
    if isinstance(image, SampleError):
        raise image
    return image


def test_frames_are_those_of_the_feed(tmp_path):
    clip = str(write(tmp_path / "a.mp4", "libx264", count=30))
    plain = open_feed(clip, FrameCounts(), 10)
    expected = list(iter(lambda: plain.take(0), None))
    frames = take_all(PrepareAhead(open_feed(clip, FrameCounts(), 10), turn))
    assert [(f.number, f.seconds, f.scene) for f in frames] == [
        (f.number, f.seconds, f.scene) for f in expected
    ]
    shrunk = ShrunkFrames()
    for frame, other in zip(frames, expected, strict=True):
        image = other.image()
        np.testing.assert_array_equal(frame.image(), image)
        np.testing.assert_array_equal(frame.prepared, turn(image))
        assert frame.size == image.nbytes
        measured = shrunk.measure(other.number, other.scene, image)
        assert (frame.quantities, frame.change) == measured
        assert frame.counts.received == frame.number + 1, "not those of a frame ahead"


def test_one_frame_is_prepared_ahead_and_no_more():
    feed = ListFeed(map(picture, range(10)))
    reader = PrepareAhead(feed, turn)
    left = []
    for _ in range(3):
        assert reader.take(5.0) is not None
        time.sleep(0.1)
        left.append(len(feed.images))
    assert left == [8, 7, 6]
    reader.close()
    assert feed.is_closed
    assert len(feed.images) == 6, "closing takes none"


def test_damaged_frames_are_counted_and_passed_over():
    feed = ListFeed([picture(0), SampleError("damaged"), SampleError("damaged"), picture(3)])
    assert [frame.number for frame in take_all(PrepareAhead(feed, turn))] == [0, 3]
    assert (feed.counts.received, feed.counts.damaged) == (4, 2)


def test_an_error_of_the_source_is_raised_behind_the_frames_before_it():
    feed = ListFeed([picture(0), picture(1), UsageError("the camera was taken away")])
    reader = PrepareAhead(feed, turn)
    assert [reader.take(5.0).number for _ in range(2)] == [0, 1]
    with pytest.raises(UsageError, match="the camera was taken away"):
        reader.take(5.0)
    assert reader.is_over
    reader.close()
    assert feed.is_closed


def test_an_error_of_the_preparation_is_raised_behind_the_frames_before_it():
    def refuse(image):
        if (image == picture(2)).all():
            raise UsageError("the model failed")
        return image

    feed = ListFeed(map(picture, range(5)))
    reader = PrepareAhead(feed, refuse)
    assert [reader.take(5.0).number for _ in range(2)] == [0, 1]
    with pytest.raises(UsageError, match="the model failed"):
        reader.take(5.0)
    reader.close()
    assert feed.is_closed
    assert feed.counts.damaged == 0, "the frame is as good as any"


def test_measures_read_the_frame_before_the_model_changes_it():
    def blacken(image):
        image[:] = 0
        return image

    frames = take_all(PrepareAhead(ListFeed(map(picture, range(3))), blacken))
    shrunk = ShrunkFrames()
    assert [(frame.quantities, frame.change) for frame in frames] == [
        shrunk.measure(n, 0, picture(n)) for n in range(3)
    ]
    assert not any(frame.prepared.any() for frame in frames)
