"""Files that name images name none outside of the folder that the user gave."""

import json

import pytest
from fixtures.tiny_sources import of_coco, of_mot, of_voc, of_yolo, picture

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.core.storage.confinement import VARIABLE
from steadyeye.review.sampling.box_sampling import sample_boxes

OUTSIDE = ("../secrets/000005.bmp", "ABSOLUTE", "linked.bmp")


def built(spec):
    return plugins.build("sources", parse(spec))


@pytest.fixture
def secret(tmp_path):
    """A picture outside of what the user names."""
    (tmp_path / "secrets").mkdir()
    path = tmp_path / "secrets" / "000005.bmp"
    path.write_bytes(picture(200))
    return path


def name_of(text, secret, folder):
    """The name that a file has of the secret, of one of three kinds."""
    (folder / "linked.bmp").symlink_to(secret)
    return {"ABSOLUTE": str(secret)}.get(text, text)


def coco(root, secret, text):
    spec, _ = of_coco(root / "data")
    path = root / "data" / "a.json"
    content = json.loads(path.read_text())
    name = name_of(text, secret, root / "data" / "images")
    content["images"][5]["file_name"] = name if name[0] != "." else f"../{name}"
    path.write_text(json.dumps(content))
    return spec


def nao(root, secret, text):
    coco(root, secret, text)
    (root / "data" / "a.json").rename(root / "data" / "annotations.json")
    return f"nao(root='{root / 'data'}')"


def voc(root, secret, text):
    spec, _ = of_voc(root / "data")
    path = root / "data" / "xml" / "000005.xml"
    name = name_of(text, secret, root / "data" / "images")
    name = name if name[0] != "." else f"../{name}"
    path.write_text(path.read_text().replace("000005.bmp", name))
    return spec


def vid(root, secret, text):
    base = root / "data"
    (base / "metadata").mkdir(parents=True)
    frame = name_of(text, secret, base).replace("linked.bmp", "linked/000005.bmp")
    (base / "linked").symlink_to(secret.parent)
    for file, content in (("pmsets", {frame: []}), ("labels", {frame: [0]})):
        (base / "metadata" / f"{file}.json").write_text(json.dumps(content))
    return f"imagenet_vid_robust(root='{base}')"


KINDS = {"coco": coco, "nao": nao, "voc": voc, "imagenet_vid_robust": vid}


@pytest.mark.parametrize("text", OUTSIDE)
@pytest.mark.parametrize("kind", KINDS)
def test_an_image_outside_is_refused_unless_it_is_allowed(
    kind, text, tmp_path, secret, monkeypatch
):
    spec = KINDS[kind](tmp_path, secret, text)
    with pytest.raises(UsageError, match="outside of"):
        built(spec)
    monkeypatch.setenv(VARIABLE, str(secret.parent))
    source = built(spec)
    assert any(file.samefile(secret) for file in source.files())
    images = [source[i].image() for i in range(len(source)) if source.files()[i].samefile(secret)]
    assert images[0].mean() == 200


@pytest.mark.parametrize("lines", ["path: ../elsewhere\nval: images\n", "val: ../elsewhere\n"])
def test_what_data_yaml_names_lies_in_its_folder_or_in_a_root_that_is_given(lines, tmp_path):
    of_yolo(tmp_path / "data")
    of_yolo(tmp_path / "elsewhere")
    path = tmp_path / "data" / "data.yaml"
    path.write_text(f"{lines}names: [a, b]\n")
    with pytest.raises(UsageError, match=r"outside of .*give yolo\(…, root='FOLDER'\)"):
        built(f"yolo(data='{path}')")
    source = built(f"yolo(data='{path}', root='{tmp_path}')")
    assert len(source) == 8


def test_a_sequence_of_mot_keeps_its_frames_in_its_folder(tmp_path):
    spec, _ = of_mot(tmp_path / "data")
    of_mot(tmp_path / "elsewhere")
    info = tmp_path / "data" / "seq" / "seqinfo.ini"
    info.write_text("[Sequence]\nimDir=../../elsewhere/seq/img1\n")
    with pytest.raises(UsageError, match="outside of"):
        built(spec)
    info.write_text("[Sequence]\nimDir=img1\n")
    assert len(built(spec))


def test_suggested_boxes_are_of_images_in_their_folder(tmp_path, secret):
    images = tmp_path / "data"
    images.mkdir()
    (images / "linked.bmp").symlink_to(secret)
    box = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 8, 8]}
    content = {
        "images": [{"id": 1, "file_name": "linked.bmp"}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [box],
    }
    (tmp_path / "boxes.json").write_text(json.dumps(content))

    def sample(images):
        return sample_boxes(tmp_path / "boxes.json", images, tmp_path / "set", lambda n: None)

    with pytest.raises(UsageError, match="outside of"):
        sample(images)
    (images / "linked.bmp").unlink()
    (images / "linked.bmp").write_bytes(secret.read_bytes())
    assert sample(images) == (1, 1)
