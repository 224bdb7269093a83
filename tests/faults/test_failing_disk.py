"""A few of the trials of `make faults`, and the faults that they found."""

import errno
import fcntl
import shutil
from random import Random

import fault_trials
import faulty_commands
import pytest

from steadyeye.core.errors import UsageError
from steadyeye.core.storage import files, sha256sums
from steadyeye.data.annotations import review_set
from steadyeye.review.interchange import formats as export_formats

BY_NAME = faulty_commands.BY_NAME
pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return faulty_commands.write_world(tmp_path_factory.mktemp("world").resolve() / "here")


def find_calls(world, case, call, ending):
    """The numbers of those calls of a case that concern paths with that ending."""
    world.learn(case)
    lines = [line.split(" ", 2) for line in world.calls[case.name]]
    return [int(n) for n, kind, path in lines if kind == call and path.endswith(ending)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "call", "ending"),
    [
        ("sample", "mkdir", "/set"),
        ("sample", "rename", "/set.json"),
        ("sample", "sync", "/set"),
        ("review-export", "rename", "/out/.export.whole"),
        ("review-export", "rename", "/out/set.json"),
        ("score", "rename", "/report.html"),
        ("leaderboard", "rename", "/index.html"),
        ("card", "rename", "/card.md"),
    ],
)
def test_a_call_that_fails_is_one_line_and_the_same_command_ends(world, name, call, ending):
    number = find_calls(world, BY_NAME[name], call, ending)[-1]
    assert faulty_commands.fail_at(world, BY_NAME[name], number, errno.EIO) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["score", "sample", "review-export", "leaderboard"])
def test_killed_commands_end_with_the_same_bytes(world, name):
    world.learn(BY_NAME[name])
    outcome = fault_trials.try_kills(world, BY_NAME[name], 3, Random(0))
    assert not outcome.faults, "\n".join(outcome.faults)
    assert outcome.tried["killed"] == 3


@pytest.mark.slow
def test_half_a_picture_is_not_taken_as_one(world):
    case = BY_NAME["review-export"]
    number = find_calls(world, case, "write", ".tmp")[3]
    assert faulty_commands.fail_at(world, case, number, 0) == ""


def test_temporary_files_of_a_killed_process_are_removed_and_open_ones_stay(tmp_path):
    for name in (".a.html.1.2.tmp", ".a.html.3.4.tmp", ".b.html.1.2.tmp"):
        (tmp_path / name).write_bytes(b"half")
    with (tmp_path / ".a.html.3.4.tmp").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        files.write_output(tmp_path / "a.html", b"whole")
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"a.html", ".a.html.3.4.tmp", ".b.html.1.2.tmp"}


def export(out, text, formats=("set", "pmsets")):
    """An export in both formats, whose files all hold a text."""
    with export_formats.stage_export(out, formats) as part:
        if "set" in formats:
            (part / "set.json").write_text(text)
        if "pmsets" in formats:
            (part / "metadata").mkdir()
            (part / "metadata" / "labels.json").write_text(text)
        (part / "comments.json").write_text(text)
        sha256sums.write_sums(part, [p for p in part.rglob("*.json") if p.name != "comments.json"])


def read(folder):
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


# three files are renamed when they are written, four when they are moved
def test_an_export_stopped_at_any_file_is_finished_by_the_next(tmp_path, monkeypatch):
    export(tmp_path / "whole", "text")
    for left in range(8):
        out = tmp_path / f"stopped{left}"
        moves = iter([*[False] * left, *[True] * 9])
        move = type(out).replace

        def stop(path, target, moves=moves, move=move):
            if ".export" in str(path) and next(moves):
                raise OSError(errno.EIO, "Input/output error")
            return move(path, target)

        with monkeypatch.context() as patch:
            patch.setattr(type(out), "replace", stop)
            if left < 7:
                with pytest.raises(UsageError, match="run the same command again"):
                    export(out, "text")
            else:
                export(out, "text")
        if left < 7:
            export(out, "text")
        assert read(out) == read(tmp_path / "whole")
        assert not [path for path in out.iterdir() if path.name.startswith(".")]


def test_an_export_that_is_whole_is_not_written_over(tmp_path):
    out = tmp_path / "out"
    export(out, "first", ["set"])
    sums = sha256sums.read_sums(out)
    before = read(out)
    with pytest.raises(UsageError, match="holds a set already"):
        export(out, "second", ["set"])
    with pytest.raises(ZeroDivisionError), export_formats.stage_export(out, ["pmsets"]) as part:
        (part / "new.json").write_text(str(1 // 0))
    assert read(out) == before
    export(out, "second", ["pmsets"])
    assert (out / "set.json").read_text() == "first"
    assert {"set.json", "metadata/labels.json"} == set(sha256sums.read_sums(out))
    assert sha256sums.read_sums(out)["set.json"] == sums["set.json"]
    with pytest.raises(UsageError, match="holds an export as pmsets already"):
        export(out, "third", ["pmsets"])


def test_the_remains_of_a_killed_export_next_to_a_complete_one_are_removed(tmp_path):
    """One killed while its files were moved was finished by the next, which was killed as well."""
    out = tmp_path / "out"
    export(out, "first", ["set"])
    before = read(out)
    (out / export_formats.PART / "images").mkdir(parents=True)
    (out / export_formats.PART / "images" / "a.jpg").write_bytes(b"half")
    with pytest.raises(UsageError, match="holds a set already"):
        export(out, "second", ["set"])
    assert read(out) == before
    assert not (out / export_formats.PART).exists()


def test_a_stopped_export_leaves_no_folder_that_was_not_there(tmp_path):
    with pytest.raises(KeyboardInterrupt), export_formats.stage_export(tmp_path / "out", ["set"]):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_a_set_whose_last_sync_fails_is_none(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(files, "sync_folder", fail)
        with pytest.raises(OSError, match="Input/output"):
            review_set.write_manifest(tmp_path, {"name": "set"})
    assert not list(tmp_path.iterdir())
