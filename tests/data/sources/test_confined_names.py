"""Files that name images name none outside the folder that the user named."""

import json

import pytest
from fixtures.tiny_sources import (
    of_coco,
    of_davis,
    of_frames,
    of_mot,
    of_video,
    of_voc,
    of_yolo,
    picture,
    pictures,
)

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import parse
from steadyeye.core.storage.confinement import VARIABLE
from steadyeye.review.sampling.sampling import sample_boxes

OUTSIDE = ("../secrets/000005.bmp", "ABSOLUTE", "linked.bmp")


def build_source(spec):
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
        build_source(spec)
    monkeypatch.setenv(VARIABLE, str(secret.parent))
    source = build_source(spec)
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
        build_source(f"yolo(data='{path}')")
    source = build_source(f"yolo(data='{path}', root='{tmp_path}')")
    assert len(source) == 8


def test_a_sequence_of_mot_keeps_its_frames_in_its_folder(tmp_path):
    spec, _ = of_mot(tmp_path / "data")
    of_mot(tmp_path / "elsewhere")
    info = tmp_path / "data" / "seq" / "seqinfo.ini"
    info.write_text("[Sequence]\nimDir=../../elsewhere/seq/img1\n")
    with pytest.raises(UsageError, match="outside of"):
        build_source(spec)
    info.write_text("[Sequence]\nimDir=img1\n")
    assert len(build_source(spec))


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


def imagenet_vid(root, path):
    data, annotated = (root / kind / "VID" / "val" / "a" for kind in ("Data", "Annotations"))
    pictures(data, ["000000.bmp", "000001.bmp"])
    annotated.mkdir(parents=True)
    sides = "<xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax>"
    for stem in ("000000", "000001"):
        (annotated / f"{stem}.xml").write_text(
            f"<annotation><folder>{path.parent}</folder><filename>{path}</filename><object>"
            f"<name>n02958343</name><bndbox>{sides}</bndbox></object></annotation>"
        )
    return f"imagenet_vid(root='{root}')"


def with_sidecar(make, video):
    """What writes data with a sidecar that labels `video`, and what lies outside as well."""

    def write(root, path):
        spec, _ = make(root)
        labels = root / "labels.csv"
        names = (video, path, "../secrets", "../secrets/000005", "../secrets/000005.bmp")
        labels.write_text("\n".join(["video,labels", *(f"{name},a" for name in names)]))
        return spec if "labels=" in spec else spec.replace(")", f", labels='{labels}')")

    return write


FROM_LISTINGS = {
    "imagenet_vid": imagenet_vid,
    "davis": with_sidecar(of_davis, "dog"),
    "video": with_sidecar(of_video, "clip.avi"),
    "frames": with_sidecar(of_frames, "data"),
}


@pytest.mark.parametrize("kind", FROM_LISTINGS)
def test_annotations_of_frames_open_nothing_that_they_name(kind, tmp_path, secret):
    """The frames are those that lie in the folder, whatever an annotation or a sidecar names."""
    root = tmp_path / "data"
    source = build_source(FROM_LISTINGS[kind](root, secret))
    assert len(source)
    assert all(path.resolve().is_relative_to(root) for path in source.files())
    assert not any(abs(source[i].image().mean() - 200) < 1 for i in range(len(source)))


def test_annotations_of_imagenet_vid_quote_no_file(tmp_path, secret):
    secret.write_text("n02958343 of a secret")
    spec = imagenet_vid(tmp_path / "data", secret)
    path = tmp_path / "data" / "Annotations" / "VID" / "val" / "a" / "000000.xml"
    entity = f'<!DOCTYPE a [<!ENTITY x SYSTEM "file://{secret}">]>'
    path.write_text(entity + path.read_text().replace("n02958343", "&x;"))
    with pytest.raises(UsageError, match="defines entities") as raised:
        build_source(spec)
    assert "secret" not in str(raised.value).replace(str(tmp_path), "")
