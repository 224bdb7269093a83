"""Texts from others in CSV files are no formulas, and are read back unchanged."""

import csv
import io
import re
from pathlib import Path

import cv2
import numpy as np
import pytest

import steadyeye as se
from steadyeye.cli.terminal import name_controls
from steadyeye.core.storage.text_files import protect_cells, read_rows
from steadyeye.core.types import Classes
from steadyeye.data.classes.class_mapping import identity
from steadyeye.data.classes.map_file import from_file, to_csv
from steadyeye.metrics.label_studies.files import write_labels
from steadyeye.predictions.sample_rows import encode_rows

WIDE = ["\N{FULLWIDTH EQUALS SIGN}1+1", "\N{FULLWIDTH COMMERCIAL AT}SUM(A1)"]
ROOT = Path(se.__file__).parent
ATTACKS = [*WIDE, "=1+1", "+1+1", "-1+1", "@SUM(A1)", "'=1+1", "''=1", '=HYPERLINK("http://a")']
PLAIN = ["cat", "", "a=b", "'quoted'", "-5", "+1.5e3", "-", "it's", "0"]


@pytest.mark.parametrize("text", ATTACKS)
def test_a_text_that_is_a_formula_begins_with_an_apostrophe(text):
    assert protect_cells([text]) == [f"'{text}"]


def test_tabs_and_line_ends_in_front_are_protected_and_numbers_stay():
    assert protect_cells(["\t=1", "\r=1", "\n=1"]) == ["'\t=1", "'\r=1", "'\n=1"]
    assert protect_cells([-1, -0.5, None, "-1"]) == [-1, -0.5, None, "-1"]


@pytest.mark.parametrize("text", [*ATTACKS, *(text for text in PLAIN if text)])
def test_protected_cells_are_read_back_unchanged(text, tmp_path):
    out = io.StringIO()
    csv.writer(out).writerow(protect_cells([text, "other"]))
    (tmp_path / "a.csv").write_text(out.getvalue())
    assert [cells for _, cells in read_rows(tmp_path / "a.csv", "table")] == [[text, "other"]]


def test_a_class_map_with_classes_like_formulas_is_read_back(tmp_path):
    classes = Classes(("=cmd|' /C calc'!A0", "@dog", "cat"))
    first = identity(classes)
    text = to_csv(first)
    assert not any(
        cell[:1] in "=@" for row in csv.reader(io.StringIO(text)) for cell in row if cell
    )
    (tmp_path / "map.csv").write_text(text)
    assert from_file(tmp_path / "map.csv", classes, classes).members == first.members


def test_control_characters_are_written_out():
    assert name_controls("a\x1b[31mb\x07\u202e\x9bc\td é") == r"a\x1b[31mb\x07\u202e\x9bc" + "\td é"


def test_every_exported_table_is_protected(tmp_path):
    writers = [
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if re.search(r"csv\.(writer|DictWriter)|to_csv\(path|write_csv", path.read_text("utf-8"))
    ]
    # all others call its `encode_csv`
    assert writers == ["core/storage/text_files.py"]
    assert write_labels({"@scene": ["=dog"]}) == b"set,labels\n'@scene,'=dog\n"
    names = ("=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0")
    for number, name in enumerate(names):
        (tmp_path / "=data" / name.replace("/", "|")).mkdir(parents=True)
        image = np.full((8, 8, 3), 100 * number, np.uint8)
        cv2.imwrite(str(tmp_path / "=data" / name.replace("/", "|") / "0.png"), image)

    def guess(images):
        return np.tile([0.2, 0.5, 0.3], (len(images), 1))

    guess.__name__ = "=model()"
    run = se.evaluate(
        guess, f"image_folder(root={str(tmp_path / '=data')!r})", out=tmp_path / "run"
    )
    run.report(tmp_path / "results.csv")
    samples = run.rows()
    samples = samples.rename_columns([f"={name}" for name in samples.column_names])
    for text in ((tmp_path / "results.csv").read_text(), encode_rows(samples, ".csv").decode()):
        rows = list(csv.reader(io.StringIO(text)))
        assert {"'=model()", "'=data"} <= {cell for row in rows for cell in row}
        cells = [cell for row in rows for cell in row if cell and not is_number(cell)]
        assert not [cell for cell in cells if cell[0] in "=+-@\t\r\n"]


def is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
