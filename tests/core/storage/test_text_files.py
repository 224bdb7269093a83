"""Tables and settings as editors and spreadsheets write them: the same content, or one line."""

import itertools
import json
from time import process_time

import pytest
from fixtures.tiny_sources import COUNT, film

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.core.storage.text_files import (
    MOST_COLUMNS,
    decode_text,
    read_ini,
    read_json,
    read_table,
    read_toml,
)
from steadyeye.data.classes import class_lists
from steadyeye.data.video import label_sidecar
from steadyeye.runner.saved_detections import are_detections

CODINGS = ("utf-8", "utf-8-sig", "utf-16")
ENDS = ("\n", "\r\n", "\r")
ROWS = [{"video": "a", "x": "1"}, {"video": "b é", "x": "2"}]


@pytest.mark.parametrize(("coding", "end"), [*itertools.product(CODINGS, ENDS)])
def test_codings_and_line_ends_change_nothing(coding, end, tmp_path):
    def write(name, *lines):
        (tmp_path / name).write_bytes(end.join([*lines, ""]).encode(coding))
        return tmp_path / name

    for separator in ",;\t":
        lines = [separator.join(cells) for cells in (["video", "x"], ["a", "1"], ["b é", "2"])]
        table = read_table(write("a.csv", *lines), "table", ("video", "x"))
        assert [dict(row.cells) for row in table] == ROWS
        assert [row.line for row in table] == [2, 3]
        # the line that Excel reads, and what it becomes where a spreadsheet fills the row
        for first in ("sep=#", "SEP=#", '"sep=#"', "sep=##"):
            marked = (line.replace("#", separator) for line in (first, *lines))
            table = read_table(write("a.csv", *marked), "table", ("video", "x"))
            assert [dict(row.cells) for row in table] == ROWS
            assert [row.line for row in table] == [3, 4]
    assert read_toml(write("a.toml", "# é", "a = 1", "b = 'é'"), "job") == {"a": 1, "b": "é"}
    ini = read_ini(write("a.ini", "[Sequence]", "imDir=é", "seqLength=3"), "sequence")
    assert dict(ini["Sequence"]) == {"imdir": "é", "seqlength": "3"}
    assert read_json(write("a.json", "[1,", '"é"]'), "list") == [1, "é"]
    assert class_lists.read(str(write("a.txt", "dark", "é"))).names == ("dark", "é")


def test_a_device_is_no_file(tmp_path):
    (tmp_path / "a.csv").symlink_to("/dev/zero")
    for read in (read_table, read_json, read_toml, read_ini):
        with pytest.raises(UsageError, match=r"a\.csv' is a device; give a file"):
            read(tmp_path / "a.csv", "file")


@pytest.mark.parametrize("coding", ["latin-1", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["a.csv", "a.toml", "a.ini", "a.json", "a.txt"])
def test_an_unreadable_text_file_is_refused_with_the_encoding_to_use(name, coding, tmp_path):
    path = tmp_path / name
    path.write_bytes("name\né\n".encode(coding))
    readers = {"csv": read_table, "toml": read_toml, "ini": read_ini, "json": read_json}
    read = readers.get(name[2:], lambda path, title: class_lists.read(str(path)))
    with pytest.raises(UsageError) as raised:
        read(path, "file")
    text = str(raised.value)
    assert f"'{path}'" in text
    assert text.endswith("save it as UTF-8")


HEADERS = ["\ufeffvideo,time ms", "\ufeff Video ; TIME-MS", "VIDEO\tTime_ms", '"video","time__ms "']


@pytest.mark.parametrize("header", HEADERS)
def test_marks_case_and_blanks_hide_no_column(header, tmp_path):
    separator = next(sign for sign in ";\t," if sign in header)
    (tmp_path / "a.csv").write_text(f"{header}\na{separator}5\n", "utf-8")
    (row,) = read_table(tmp_path / "a.csv", "table", ("video",), ("time_ms",))
    assert dict(row.cells) == {"video": "a", "time_ms": "5"}


def test_a_column_that_is_nearly_one_is_named(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("video,lables\na,b\n")
    with pytest.raises(UsageError) as raised:
        read_table(path, "labels", ("video",), ("labels", "first"))
    assert str(raised.value) == (
        f"the labels '{path}' has a column 'lables'; did you mean 'labels'? rename it, or take it "
        "out"
    )
    path.write_text("video,labels,notes,lables\na,b,c,d\n")
    (row,) = read_table(path, "labels", ("video",), ("labels", "first"))
    assert row.cells == {"video": "a", "labels": "b"}
    path.write_text("video,Video\na,b\n")
    with pytest.raises(UsageError, match="has the column 'video' twice"):
        read_table(path, "labels", ("video",))


@pytest.mark.parametrize("key", ["a" + ".a" * 20_000, "[a" + '. "b"' * 20_000 + "]"])
def test_toml_with_keys_of_too_many_parts_takes_no_memory(key, tmp_path):
    # the library's flags of 20,000 parts would take 1.6 GB
    (tmp_path / "a.toml").write_text(f"{key} = 1\n")
    with pytest.raises(UsageError, match="its values are nested too deeply"):
        read_toml(tmp_path / "a.toml", "job")
    (tmp_path / "a.toml").write_text(f"{'a.' * 99}a = '{'word. ' * 99}'\n")
    assert read_toml(tmp_path / "a.toml", "job")
    start = process_time()
    (tmp_path / "a.toml").write_text(f"a = '{'-' * 200_000}'\n")
    assert read_toml(tmp_path / "a.toml", "job")
    assert process_time() - start < 5  # 0.01 s; looked for from each letter it took a minute


def test_wide_tables_take_no_more_than_what_is_read(tmp_path):
    path, many = tmp_path / "a.csv", MOST_COLUMNS - 2
    path.write_text("video,labels," + ",".join(map(str, range(many))) + "\na,b\n" * 2_000)
    rows = read_table(path, "labels", ("video",), ("labels",))
    assert [row.cells for row in rows] == [{"video": "a", "labels": "b"}] * 2_000
    path.write_text("video,labels" + "," * MOST_COLUMNS + "\na,b\n")
    with pytest.raises(UsageError, match=r"has 20,002 columns, over 20,000; take out those"):
        read_table(path, "labels", ("video",), ("labels",))


def test_ranges_of_labels_hold_whatever_the_case_of_their_columns(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("Video,First,Last,Labels\na.mp4,3,5,dark\n")
    sidecar = label_sidecar.read(str(path))
    assert [sidecar.of("a.mp4").at(frame) for frame in (2, 3, 5, 6)] == [(), (0,), (0,), ()]
    path.write_text("Video,Frist,Last,Labels\na.mp4,3,5,dark\n")
    with pytest.raises(UsageError, match="did you mean 'first'"):
        label_sidecar.read(str(path))


FRAMES_ELSEWHERE = [
    ("video,frame,labels\na,0,dark\na,1,light\n", "'frame', but no column first and last"),
    ("video;start;end;label\na;0;39;dark\n", "'start', but no column first and last"),
    ("video;first;bis;label\na;0;39;dark\n", "'bis', but no column last"),
    ("video;von;last;label\na;;;dark\na;00:01:02,5;;dark\n", "'von', but no column first"),
]


@pytest.mark.parametrize(("table", "problem"), FRAMES_ELSEWHERE)
def test_frames_of_labels_in_other_columns_are_refused(table, problem, tmp_path):
    # every frame of the video would have all its labels
    path = tmp_path / "labels.csv"
    path.write_text(table)
    with pytest.raises(UsageError, match=f"have numbers in the column {problem}; name the first"):
        label_sidecar.read(str(path))


def test_labels_may_have_columns_of_other_things(tmp_path):
    path = tmp_path / "labels.csv"
    for table in ("video,labels,by,note\na,dark,1b,\n", "video,first,last,labels,id\na,,,dark,7\n"):
        path.write_text(table)
        assert label_sidecar.read(str(path)).of("a").at(99) == (0,)


def test_a_column_that_numbers_the_lines_of_labels_is_none_of_frames(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("id,video,label\n1,a,dark\n2,b,light\n3,c,dark\n")
    assert label_sidecar.read(str(path)).of("c").at(99) == (0,)
    for table in ("1,a,dark\n2,a,light\n3,c,dark\n", "1,a,dark\n5,b,light\n9,c,dark\n"):
        path.write_text(f"frame,video,label\n{table}")
        with pytest.raises(UsageError, match="have numbers in the column 'frame'"):
            label_sidecar.read(str(path))


@pytest.mark.parametrize("key", ["start", "label", "frames"])
def test_a_range_of_labels_in_json_has_no_other_keys(key, tmp_path):
    path = tmp_path / "labels.json"
    entry = {"first": 0, key: 5, "labels": ["dark"]}
    path.write_text(json.dumps({"videos": {"a": {"labels": [entry]}}}))
    with pytest.raises(UsageError, match=f"'a' has a range with '{key}'; a range has first, last"):
        label_sidecar.read(str(path))


def test_a_file_of_labels_names_a_video_and_labels(tmp_path):
    # without them the run would count no label and say so nowhere
    path = tmp_path / "labels.csv"
    for table, problem in (
        ("a.mp4;;;dark\n", "has no column video; its columns are a.mp4, , , dark"),
        ("video,first,last,labels\n", "have no line after the header"),
        ("video,first,last,labels\na,0,5,\n", "line 2: needs a video and its labels"),
        ("video,first,last,labels\n,0,5,dark\n", "line 2: needs a video and its labels"),
    ):
        path.write_text(table)
        with pytest.raises(UsageError, match=problem):
            label_sidecar.read(str(path))


@pytest.mark.parametrize("coding", CODINGS)
def test_detections_are_a_list_in_any_coding(coding, tmp_path):
    for content in ([{"image_id": 1}], {"a": 1}):
        (tmp_path / "a.json").write_bytes(json.dumps(content, indent=1).encode(coding))
        assert are_detections(tmp_path / "a.json") == isinstance(content, list)


@pytest.mark.parametrize("coding", CODINGS)
def test_boxes_of_videos_are_read_in_any_coding(coding, tmp_path):
    file = tmp_path / "clip.avi"
    film(file, 0)
    lines = [f"{file.name},{frame},é,1,1,5,5" for frame in range(COUNT)]
    boxes = "\n".join(["video,frame,label,x0,y0,x1,y1", *lines])
    (tmp_path / "boxes.csv").write_bytes(boxes.encode(coding))
    kwargs = {"path": str(file), "boxes": str(tmp_path / "boxes.csv"), "k": 1}
    source = plugins.build("sources", Spec("video", kwargs))
    assert source.classes.names == ("é",)


def test_a_mark_within_a_text_is_no_letter():
    assert decode_text("\ufeffcar\n\ufeffbus".encode(), "list") == "car\nbus"
