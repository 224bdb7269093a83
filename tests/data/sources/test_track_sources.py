"""Whole sequences with true tracks: MOTChallenge's text and DAVIS' masks give the same."""

import cv2
import numpy as np
import pytest

import steadyeye as se
from steadyeye.core.errors import UsageError
from steadyeye.data.images.image_file import encode
from steadyeye.data.sources.davis_tracks import davis_tracks
from steadyeye.data.sources.mot_tracks import mot_tracks

FRAMES, HEIGHT, WIDTH = 4, 60, 100


def find_nothing(images):
    """A detector of no boxes."""
    return [(np.zeros((0, 4)), [], [])] * len(images)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Two squares on a ground of noise, the second gone in frame 2, as masks and as text."""
    root = tmp_path_factory.mktemp("tracks")
    rng, lines = np.random.default_rng(0), []
    for folder in ("JPEGImages/walk", "Annotations/walk", "walk/img1", "walk/gt"):
        (root / folder).mkdir(parents=True)
    for frame in range(FRAMES):
        image = rng.integers(0, 255, (HEIGHT, WIDTH, 3), dtype=np.uint8)
        mask = np.zeros((HEIGHT, WIDTH), dtype=np.uint8)
        for number, (x, y) in enumerate(((10 + frame, 5), (80, 30)), 1):
            if (number, frame) == (2, 2):
                continue
            mask[y : y + 20, x : x + 20] = number
            image[y : y + 20, x : x + 20] = 40 * number
            lines.append(f"{frame + 1},{number},{x + 1},{y + 1},20,20,1,1,1")
        lines.append(f"{frame + 1},9,40,40,10,10,0,8,1")
        data = encode(image, ".png")
        (root / f"JPEGImages/walk/{frame:05}.png").write_bytes(data)
        (root / f"walk/img1/{frame + 1:06}.png").write_bytes(data)
        cv2.imwrite(str(root / f"Annotations/walk/{frame:05}.png"), mask)
    (root / "walk/gt/gt.txt").write_text("\n".join(lines))
    (root / "walk/seqinfo.ini").write_text("[Sequence]\nframeRate=30\nimWidth=100\nimHeight=60\n")
    (root / "labels.csv").write_text("video,labels\nwalk,person|person\n")
    return root


def test_both_give_the_same_objects(root):
    masks = davis_tracks(str(root), str(root / "labels.csv"), fps=30)
    text = mot_tracks(str(root))
    assert masks.columns == text.columns
    assert list(masks.ids) == list(text.ids) == [f"walk/{i:06}" for i in range(FRAMES)]
    assert text.notes == ("1 video, 4 frames, 2 true objects with 7 boxes; 4 boxes ignored",)
    for mask, line in zip(map(masks.__getitem__, range(FRAMES)), text, strict=False):
        real = ~line.boxes.crowd
        assert (mask.boxes.boxes == line.boxes.boxes[real]).all()
        assert (mask.boxes.track + 1 == line.boxes.track[real]).all()
        assert (
            mask.tags["seconds"] == line.tags["seconds"] == pytest.approx(line.tags["frame"] / 30)
        )
        assert (mask.image() == line.image()).all()
    assert text[0].size == (HEIGHT, WIDTH)
    assert text.fingerprint != masks.fingerprint


def test_brightness_contrast_and_sharpness_of_boxes_are_measured(root):
    """Flat squares of 40 and 80: no contrast, no edges; the second touches the right edge."""
    sample = davis_tracks(str(root), str(root / "labels.csv"))[0]
    values = sample.measure(sample.image())
    assert values["box_brightness"] == pytest.approx([40, 80], abs=1)
    assert values["box_contrast"] == pytest.approx([0, 0])
    assert values["box_sharpness"] == pytest.approx([0, 0])
    assert values["box_at_edge"].tolist() == [0, 1]
    # a frame with fewer boxes has vectors of the same length
    gone = davis_tracks(str(root), str(root / "labels.csv"))[2]
    assert np.isnan(gone.measure(gone.image())["box_brightness"]).tolist() == [False, True]


def test_the_key_of_a_frame_names_its_boxes_as_well(root):
    key, other = (davis_tracks(str(root), str(root / "labels.csv"))[i].key() for i in (0, 1))
    assert key != other
    assert key != mot_tracks(str(root))[0].key()


def test_invalid_sequences_are_refused(root, tmp_path):
    with pytest.raises(UsageError, match="fps=0 of 'walk': give frames a second above 0"):
        davis_tracks(str(root), str(root / "labels.csv"), fps=0)
    info = root / "walk/seqinfo.ini"
    text = info.read_text()
    try:
        info.write_text("[Sequence]\nimWidth=100\nimHeight=60\n")
        with pytest.raises(UsageError, match=r"has no frameRate; add it, or give fps=25"):
            mot_tracks(str(root))
        assert mot_tracks(str(root), fps=10)[1].tags["seconds"] == 0.1
        info.write_text("[Sequence]\nframeRate=-3\n")
        with pytest.raises(UsageError, match="frameRate -3; correct it"):
            mot_tracks(str(root))
    finally:
        info.write_text(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "source", ["mot_tracks(root='{}', fps=25)", "mot(root='{}', anchors='all', k=1)"]
)
def test_tracks_are_kept_where_a_frame_shows_no_object(source, tmp_path):
    """The run could not be read any more; of a short one the tracks were lost."""
    (tmp_path / "walk/img1").mkdir(parents=True)
    (tmp_path / "walk/gt").mkdir()
    for frame in range(40):
        image = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
        (tmp_path / f"walk/img1/{frame + 1:06}.png").write_bytes(encode(image, ".png"))
    lines = [f"{frame + 1},7,1,1,20,20,1,1,1" for frame in range(40) if frame != 5]
    (tmp_path / "walk/gt/gt.txt").write_text("\n".join(lines))
    run = se.evaluate(find_nothing, source.format(tmp_path), classes="coco", out=tmp_path / "run")
    assert set(run.predictions.boxes.track) == {7}
    assert 5 not in run.predictions.tags["frame"][run.predictions.boxes.image]
