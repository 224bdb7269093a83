"""Blocks, the reference, promises, the ring of frames and webhooks, each by itself."""

import json
import threading
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import cv2
import numpy as np
import pytest

from steadyeye.core.boxes import Detections
from steadyeye.core.errors import UsageError
from steadyeye.metrics.covariates.pm_set_measures import frame, luma
from steadyeye.watch.frame_ring import FrameRing, read_size
from steadyeye.watch.measures import (
    Answer,
    FrameEvent,
    Observer,
    ShrunkFrames,
    summarize_detections,
    summarize_scores,
)
from steadyeye.watch.promises import Promise, read_promise, watch_promise
from steadyeye.watch.reference import Reference
from steadyeye.watch.webhook import Webhooks

GREY = np.full((48, 64, 3), 100, dtype=np.uint8)


def measure_input(image):
    return ShrunkFrames().measure(0, 0, image)[0]


QUANTITIES_OF_GREY = measure_input(GREY)


def observe(observer, labels, step=0.1, scene=0, start=0):
    """The blocks that are completed by frames with these classes, and the last one."""
    blocks = []
    for place, label in enumerate(labels, start):
        block = observer.begin_block(place * step)
        blocks += [block] if block else []
        observer.add(place, scene, place * step, QUANTITIES_OF_GREY, Answer(label, 0.5))
    return [*blocks, observer.end_block()]


def test_flips_by_hand():
    """Blocks of a second at 10 frames: 9 pairs in the first, 10 in the second."""
    observer = Observer(("a", "b"), 1.0, Reference(60))
    first, second = observe(observer, [0] * 5 + [1] * 5 + [0] * 10)
    assert first.values()["flip_rate"] == pytest.approx(1 / 9)
    assert second.values()["flip_rate"] == pytest.approx(1 / 10)
    assert second.values()["confidence"] == 0.5
    assert (first.frames, second.frames) == (10, 10)


def test_a_model_without_names_has_numbers():
    """A function of Python may name no classes."""
    observer, events = Observer((), 1.0, Reference(60)), []
    observer.begin_block(0.0)
    for place, label in enumerate([0, 0, 2]):
        events += observer.add(place, 0, place / 10, QUANTITIES_OF_GREY, Answer(label, 0.5))
    assert [event.text for event in events] == ["class 0 → class 2"]


@pytest.mark.parametrize(("start", "covers"), [(4, True), (6, False)])
def test_a_block_that_an_outage_cut_short_does_not_count(start, covers):
    """Frames of half of it do; pictures that come less often than every 10 s stand alone."""
    observer = Observer(("a", "b"), 1.0, Reference(60))
    observer.begin_block(0.0)
    observer.add(0, 0, 0.0, QUANTITIES_OF_GREY, Answer(0, 0.5))
    first, second = observe(observer, [0] * (20 - start), scene=1, start=start)
    assert (first.covers(1.0), second.covers(1.0)) == (covers, True)
    (*_, alone) = observe(observer, [0] * 3, step=30.0, start=5)
    assert alone.covers(1.0)


def test_no_flip_over_a_cut_or_a_pause():
    observer = Observer(("a", "b"), 100.0, Reference(60))
    for place, (scene, seconds, label) in enumerate([(0, 0, 0), (1, 1, 1), (1, 12, 0), (1, 13, 1)]):
        observer.add(place, scene, seconds, QUANTITIES_OF_GREY, Answer(label, None))
    values = observer.end_block()
    assert (values.sums["flip_rate"], values.numbers["flip_rate"]) == (1, 1)


@pytest.mark.parametrize(("has_timestamps", "frames"), [(False, 10), (True, 9)])
def test_files_of_one_time_are_frames_in_their_order(has_timestamps, frames):
    """Objects that move by times begin anew at the first that is not later than the one before."""
    observer = Observer(("a", "b"), 100.0, Reference(60), has_timestamps)
    box = Detections(np.array([[1.0, 1, 9, 9]]), np.zeros(1, np.int32), np.ones(1))
    for place in range(10):
        observer.add(place, 0, 5.0 - 1e-6 * place, QUANTITIES_OF_GREY, Answer(0, 1.0, box))
    block = observer.end_block()
    assert block.numbers["blink_rate"] == frames
    assert block.values()["blink_rate"] == 0


@pytest.mark.parametrize(("step", "is_measured"), [(0.2, True), (0.5, False)])
def test_objects_are_not_followed_over_frames_that_are_far_apart(step, is_measured):
    observer = Observer(("a",), 1_000.0, Reference(60))
    box = Detections(np.array([[1.0, 1, 9, 9]]), np.zeros(1, np.int32), np.ones(1))
    jitter = np.random.default_rng(0).uniform(0, 0.005, 20)
    for place in range(20):
        observer.add(
            place, 0, place * step + jitter[place], QUANTITIES_OF_GREY, Answer(0, 1.0, box)
        )
    block = observer.end_block()
    assert ("blink_rate" in block.values()) is is_measured
    assert block.is_sparse is not is_measured
    assert "flip_rate" in block.values()


def test_scores_and_boxes_are_summarized_as_an_answer():
    assert summarize_scores(np.array([0.2, 0.8])) == Answer(1, 0.8)
    answer = summarize_scores(np.array([1.0, 3.0], dtype=np.float32))
    assert (answer.label, answer.confidence) == (1, pytest.approx(1 / (1 + np.exp(-2))))
    boxes = np.zeros((3, 4))
    detections = Detections(boxes, np.array([4, 5, 6], np.int32), np.array([0.6, 0.8, 0.4]))
    answer = summarize_detections(detections)
    assert (answer.label, answer.confidence) == (5, pytest.approx(0.7))
    weak = Detections(boxes[:1], np.zeros(1, np.int32), np.array([0.49]))
    assert (summarize_detections(weak).label, summarize_detections(weak).confidence) == (-1, None)


def test_measures_of_the_input_do_not_depend_on_much_but_the_picture():
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (90, 120, 3), dtype=np.uint8)
    large = np.kron(small, np.ones((8, 8, 1), dtype=np.uint8))
    assert measure_input(large)["brightness"] == pytest.approx(small.mean(), abs=3)
    assert measure_input(GREY) == {"brightness": 100, "contrast": 0, "sharpness": 0}


def test_a_change_is_of_the_frame_before_in_one_scene_and_size():
    frames = ShrunkFrames()
    other = GREY.copy()
    other[:12] = 200
    changes = [
        frames.measure(number, scene, image)[1]
        for number, scene, image in [
            (0, 0, GREY),
            (3, 0, other),
            (4, 0, other),
            (5, 1, GREY),
            (6, 1, GREY[:24]),
            (9, 1, GREY[:24]),
        ]
    ]
    assert changes == [None, (0.25, 3), (0, 1), None, None, (0, 3)]


# --- the reference


def feed_reference(reference, values, start=0.0):
    outside = []
    for place, (brightness, confidence) in enumerate(values):
        quantities = {"brightness": brightness, "contrast": 1.0, "sharpness": 1.0}
        answer = reference.add(start + place, {**quantities, "confidence": confidence})
        outside.append(answer)
    return outside


@pytest.mark.parametrize(
    "size", [(1080, 1920), (1920, 1080), (720, 1280), (960, 10), (360, 640), (481, 853), (90, 120)]
)
def test_frames_are_measured_on_what_opencv_makes_small(size):
    rng = np.random.default_rng(0)
    coarse = cv2.resize(rng.integers(0, 256, (9, 16, 3), dtype=np.uint8), size[::-1])
    image = coarse // 2 + rng.integers(0, 128, (*size, 3), dtype=np.uint8)
    scale = min(320 / max(size), 1)
    small = (max(round(size[1] * scale), 1), max(round(size[0] * scale), 1))
    for picture in (image, image[::-1]):
        expected = cv2.resize(picture, small, interpolation=cv2.INTER_AREA)
        assert measure_input(picture) == frame(luma(expected))


def test_unchanged_frames_are_outside_the_reference_range_in_10_percent():
    rng = np.random.default_rng(1)
    reference = Reference(3_000)
    before = feed_reference(
        reference, zip(rng.normal(100, 5, 3_001), rng.beta(8, 2, 3_001), strict=True)
    )
    assert not any(before)
    assert sorted(reference.ranges) == ["brightness", "confidence", "contrast", "sharpness"]
    assert reference.values == {}, "the values are not needed any more"
    same = feed_reference(
        reference, zip(rng.normal(100, 5, 4_000), rng.beta(8, 2, 4_000), strict=True), 3_001
    )
    assert np.mean([flags["confidence_drift"] for flags in same]) == pytest.approx(0.1, abs=0.025)
    # contrast and sharpness do not vary: of the three, one can be outside
    assert np.mean([flags["input_drift"] for flags in same]) == pytest.approx(0.1 / 3, abs=0.02)
    dark = feed_reference(
        reference, zip(rng.normal(60, 5, 50), rng.beta(8, 2, 50), strict=True), 9_000
    )
    assert all(flags["input_drift"] for flags in dark)


def test_a_reference_takes_no_more_than_its_room_and_draws_evenly():
    reference = Reference(1e9)
    feed_reference(reference, zip(range(5_000), [0.5] * 5_000, strict=True))
    values = reference.values["brightness"]
    assert len(values) == 1_000
    assert np.mean(values) == pytest.approx(2_500, abs=150)


def test_a_short_reference_waits_for_enough_frames():
    reference = Reference(1)
    feed_reference(reference, zip(range(99), [0.5] * 99, strict=True))
    assert not reference.ranges
    feed_reference(reference, [(99, 0.5)], 100)
    assert reference.ranges


def test_a_reference_that_goes_on_by_an_earlier_clock_does_not_wait_for_it():
    reference = Reference(100)
    feed_reference(reference, zip(range(60), [0.5] * 60, strict=True), 10_000)
    feed_reference(reference, zip(range(100), [0.5] * 100, strict=True), 0)
    assert not reference.ranges
    feed_reference(reference, [(100, 0.5)], 100)
    assert reference.ranges


# --- promises


@pytest.mark.parametrize(
    ("text", "limit", "says"),
    [
        ("blink_rate <= 5%", 0.05, "blink_rate <= 5.0 %"),
        ("confidence>=0.6", 0.6, "confidence >= 60.0 %"),
        (" flip_rate < 0.25% ", 0.0025, "flip_rate <= 0.25 %"),
        ("flip_rate <= 0.00123%", 0.0000123, "flip_rate <= 0.00123 %"),
    ],
)
def test_promises_as_they_are_written(text, limit, says):
    promise = read_promise(text)
    assert promise.limit == pytest.approx(limit)
    assert str(promise) == says
    assert read_promise(says.replace(" %", "%")) == promise


def test_promises_that_differ_are_written_differently():
    """A restart and the metrics know a promise by its text."""
    limits = [0.01 * number for number in range(1, 100)] + [1 / 7, 1e-7, 2e-7, 0.0500001]
    texts = {str(Promise("flip_rate", True, limit)) for limit in limits}
    assert len(texts) == len(limits)
    assert all(len(text) < 35 for text in texts)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("blink_rate", "is no promise; write a measure, <= or >=, and a share"),
        ("blink_rat <= 5%", "no measure named 'blink_rat'; did you mean 'blink_rate'?"),
        ("blink_rate <= 0%", "give a share above 0 % and below 100 %"),
        ("blink_rate <= 200%", "give a share above 0 % and below 100 %"),
        ("blink_rate <= 1.2.3%", "is no number"),
    ],
)
def test_invalid_promises_are_refused(text, words):
    with pytest.raises(UsageError) as refusal:
        read_promise(text)
    assert words in str(refusal.value)


@pytest.mark.parametrize(
    ("text", "good", "bad"), [("x <= 10%", 0.02, 0.6), ("x >= 90%", 0.98, 0.4)]
)
def test_a_promise_is_broken_and_kept_again(text, good, bad):
    promise = read_promise(text.replace("x", "confidence"))
    state, every = watch_promise(promise, 8_640), 8_640
    for _ in range(500):
        state = state.add(good, every)
    assert not state.is_broken
    blocks = 0
    while not state.is_broken:
        state, blocks = state.add(bad, every), blocks + 1
        resumed = watch_promise(promise, every).resume(
            json.loads(json.dumps(state.record())), every
        )
        assert resumed == state
    assert blocks < 10
    for _ in range(30):
        state = state.add(bad, every)
    assert (state.is_broken, state.broken) == (True, 1), "it is told once"
    blocks = 0
    while state.is_broken:
        state, blocks = state.add(good, every), blocks + 1
    assert blocks < 60
    assert state.broken == 1


# --- the ring of frames


def buffer(ring, number, seconds, image):
    ring.buffer(number, seconds, f"20260101T{number:06}.000Z", lambda: image, image.nbytes)


def fill(ring, numbers, measure="flip_rate", size=64):
    rng = np.random.default_rng(0)
    for number in numbers:
        image = rng.integers(0, 256, (size, size, 3), dtype=np.uint8)
        buffer(ring, number, number * 2.0, image)
        ring.store(FrameEvent(number, measure, "a → b", (1, 2, 3, 4)), {})


def test_the_ring_never_takes_more_than_its_room(tmp_path):
    ring = FrameRing(tmp_path, 60_000)
    fill(ring, range(40))
    on_disk = sum(file.stat().st_size for file in tmp_path.iterdir())
    assert ring.size == on_disk <= 60_000
    assert 3 < len(ring.names) < 40
    assert ring.names[-1].startswith("20260101T000039")
    assert len(list(tmp_path.iterdir())) == 2 * len(ring.names)
    assert ring.describe(ring.names[-1])["box"] == [1, 2, 3, 4]
    # after a restart, with less room
    again = FrameRing(tmp_path, 30_000)
    assert again.names == ring.names[-len(again.names) :]
    assert again.size <= 30_000


def test_the_ring_deletes_the_oldest_frames_first_after_the_clock_was_set_back(tmp_path):
    names = [f"20260102T00000{n}.000Z-{n}-flip_rate.jpg" for n in range(4)]
    names += [f"20260101T00000{n}.000Z-{n}-flip_rate.jpg" for n in range(4, 8)]
    for name in names:
        (tmp_path / name).write_bytes(bytes(1_000))
    assert FrameRing(tmp_path, 10_000).names == names
    assert FrameRing(tmp_path, 3_000).names == names[5:]


def test_one_frame_a_second_and_measure_is_stored(tmp_path):
    ring = FrameRing(tmp_path, 10**7)
    for number in range(20):
        buffer(ring, number, number / 10, GREY)
        ring.store(FrameEvent(number, "flip_rate", "a → b"), {})
        ring.store(FrameEvent(number, "blink_rate", "a not found"), {})
    assert (len(ring.names), ring.left_out) == (4, 36)
    ring.store(FrameEvent(-5, "flip_rate", "a → b"), {})
    assert ring.left_out == 37, "one whose pixels are gone"
    assert len(ring._recent) == 20


def test_pixels_are_held_for_two_seconds_and_in_little_room(tmp_path):
    ring = FrameRing(tmp_path, 10**7)
    large = np.zeros((1080, 1920, 3), dtype=np.uint8)
    for number in range(30):
        buffer(ring, number, number / 30, large)
    assert len(ring._recent) == 10
    for number in range(30, 200):
        buffer(ring, number, float(number), GREY)
    assert len(ring._recent) == 3


def test_pixels_are_asked_for_only_of_what_is_stored(tmp_path):
    ring, calls = FrameRing(tmp_path, 10**7), []
    for number in range(20):

        def image(number=number):
            calls.append(number)
            return GREY

        ring.buffer(number, number / 10, f"20260101T{number:06}.000Z", image, GREY.nbytes)
    for number in (3, 5, 16):
        ring.store(FrameEvent(number, "flip_rate", "a → b"), {})
    assert calls == [3, 16], "frame 5 is within a second of frame 3"


def test_only_its_own_pictures_are_read(tmp_path):
    (tmp_path / "frames").mkdir()
    (tmp_path / "secret.jpg").write_bytes(b"secret")
    ring = FrameRing(tmp_path / "frames", 10**6)
    fill(ring, [1])
    assert ring.read(ring.names[0])[:2] == b"\xff\xd8"
    for name in ("../secret.jpg", "secret.jpg", "20260101T000001.000Z-9-flip_rate.jpg", ""):
        assert ring.read(name) is None


def test_sizes_in_bytes_are_read():
    assert (read_size("200MB"), read_size("1.5 gb")) == (200_000_000, 1_500_000_000)
    for text in ("200", "MB", "0MB", "1.2.3MB", "-1MB"):
        with pytest.raises(UsageError, match="is no size; write one such as 200MB"):
            read_size(text)


# --- webhooks


class Receiver(BaseHTTPRequestHandler):
    """Answers with the codes of the server in turn, then with 200."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append((self.path, self.headers["Content-Type"], json.loads(body)))
        self.server.logins.append(self.headers["Authorization"])
        code = self.server.codes.pop(0) if self.server.codes else 200
        self.send_response(code)
        if code == 302:
            self.send_header("Location", f"http://127.0.0.1:{self.server.server_port}/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    server.bodies, server.codes, server.logins = [], [], []
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def post(server, codes, waits=(0.0, 0.0)):
    server.codes = list(codes)
    lines = []
    hooks = Webhooks([f"http://127.0.0.1:{server.server_port}/hook?key=1"], lines.append, waits)
    hooks.post({"event": "broken", "what": "é"})
    hooks.close(20)
    return hooks, lines


def test_an_event_arrives_as_json(receiver):
    hooks, lines = post(receiver, [])
    assert receiver.bodies == [
        ("/hook?key=1", "application/json", {"event": "broken", "what": "é"})
    ]
    assert (hooks.deliveries, hooks.failures, lines) == (1, 0, [])


def test_a_name_and_a_password_in_the_address_are_sent(receiver):
    """They were taken for a part of the host's name, so that nothing arrived."""
    hooks = Webhooks([f"http://me:p%40ss@127.0.0.1:{receiver.server_port}/hook"], print, waits=())
    hooks.post({"event": "broken"})
    hooks.close(20)
    assert (hooks.deliveries, hooks.failures) == (1, 0)
    assert b64decode(receiver.logins[0].removeprefix("Basic ")) == b"me:p@ss"


def test_an_event_is_tried_a_few_times_and_then_given_up(receiver):
    hooks, lines = post(receiver, [500, 503])
    assert (hooks.deliveries, len(receiver.bodies), lines) == (1, 3, [])
    hooks, lines = post(receiver, [500] * 9)
    assert (hooks.failures, len(receiver.bodies)) == (1, 6)
    reason = "tried 3 times: HTTP Error 500: Internal Server Error"
    assert lines == [
        f"alert not delivered to http://127.0.0.1:{receiver.server_port}/hook, {reason}",
        "1 of 1 post not delivered",
    ]
    assert "key" not in lines[0]


def test_an_address_that_sends_elsewhere_is_not_followed(receiver):
    hooks, _ = post(receiver, [302] * 3)
    assert {path for path, _, _ in receiver.bodies} == {"/hook?key=1"}
    assert hooks.failures == 1


def test_an_address_that_does_not_answer_does_not_delay_another(receiver):
    lines = []
    alive = f"http://127.0.0.1:{receiver.server_port}/hook"
    hooks = Webhooks(["http://127.0.0.1:9/none", alive], lines.append, waits=(60.0,))
    for number in range(3):
        hooks.post({"number": number})
    hooks.close(2)
    assert [body["number"] for _, _, body in receiver.bodies] == [0, 1, 2]
    assert (hooks.deliveries, hooks.failures, lines[-1]) == (3, 3, "3 of 6 posts not delivered")


def test_an_address_that_nobody_answers_at_holds_nothing_up():
    lines = []
    hooks = Webhooks(["http://127.0.0.1:9/none"], lines.append, waits=(60.0,))
    for number in range(150):
        hooks.post({"number": number})
    hooks.close(0.2)
    assert hooks.failures == 150
    full = "alert not delivered to http://127.0.0.1:9/none: 100 newer ones wait"
    refused = "tried once: [Errno 111] Connection refused"
    # the thread takes one of them before the queue is full, or while it is
    assert lines.count(full) in (49, 50)
    assert sum(refused in line for line in lines) == 1
    assert (len(lines), lines[-1]) == (lines.count(full) + 2, "150 of 150 posts not delivered")
    for address in ("ftp://x/y", "file:///etc/passwd", "http://", "x"):
        with pytest.raises(UsageError, match="is no address to post to"):
            Webhooks([address], lines.append)
