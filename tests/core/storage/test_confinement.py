"""Names in files lead only into the folder that the user named."""

import os
from pathlib import Path

import pytest

from steadyeye.core.errors import UsageError
from steadyeye.core.storage.confinement import VARIABLE, check_folder, confine
from steadyeye.core.storage.remote_path import Remote


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A root with files and links, and a folder outside of it; all inside a linked folder."""
    (tmp_path / "real").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    root, outside = tmp_path / "linked" / "root", tmp_path / "linked" / "root-secrets"
    for folder in (root / "inner", outside):
        folder.mkdir(parents=True)
        (folder / "a.jpg").write_bytes(b"")
    (root / "linked.jpg").symlink_to(outside / "a.jpg")
    (root / "own.jpg").symlink_to("inner/a.jpg")
    (root / "folder").symlink_to(outside)
    (root / "again").symlink_to("again")
    return root, outside


def test_names_inside_lead_to_the_file_as_it_is_written(folders):
    root, _ = folders
    locate = confine(root, "list.json")
    for name in ("inner/a.jpg", "inner/../inner/a.jpg", "own.jpg", "not there/b.jpg", "a..b.jpg"):
        assert locate(name) == root / name
    assert locate(str(root / "inner" / "a.jpg")) == root / "inner" / "a.jpg"
    assert locate(str(root.resolve() / "b.jpg")) == root.resolve() / "b.jpg"


@pytest.mark.parametrize(
    "name",
    [
        "../root-secrets/a.jpg",
        "inner/../../root-secrets/a.jpg",
        "linked.jpg",
        "folder/a.jpg",
        "folder/..",
        "..",
        "/etc/passwd",
        "ABSOLUTE",
        "not there/../../b.jpg",
        "a\0b.jpg",
        7,
        None,
    ],
)
def test_other_names_are_refused_with_the_cure(folders, name):
    root, outside = folders
    name = str(outside / "a.jpg") if name == "ABSOLUTE" else name
    with pytest.raises(UsageError) as raised:
        confine(root, "list.json", "say where")(name)
    text = str(raised.value)
    assert text.startswith("'list.json' names")
    assert "\n" not in text
    if isinstance(name, str) and "\0" not in name:
        assert "say where" in text
        assert f"export {VARIABLE}=FOLDER" in text


def test_the_user_may_allow_another_folder(folders, monkeypatch):
    root, outside = folders
    monkeypatch.setenv(VARIABLE, os.pathsep.join(["/nowhere", str(outside)]))
    locate = confine(root, "list.json")
    assert locate("linked.jpg").samefile(outside / "a.jpg")
    assert locate("../root-secrets/a.jpg").samefile(outside / "a.jpg")
    with pytest.raises(UsageError, match="outside of"):
        locate("../root-secrets-too/a.jpg")


def test_the_whole_disk_may_be_the_root(folders):
    _, outside = folders
    assert confine(Path("/"), "list.json")(str(outside / "a.jpg")) == outside / "a.jpg"


def test_a_link_that_is_put_there_later_is_seen(folders):
    root, outside = folders
    locate = confine(root, "list.json")
    locate("late.jpg")
    (root / "late.jpg").symlink_to(outside / "a.jpg")
    with pytest.raises(UsageError, match="outside of"):
        locate("late.jpg")


def test_names_in_a_store_go_up_nowhere():
    locate = confine(Remote("s3://bucket/images"), "list.json")
    assert str(locate("a/b.jpg")) == "s3://bucket/images/a/b.jpg"
    for name in ("../other/b.jpg", "a/../../b.jpg"):
        with pytest.raises(UsageError, match="outside of"):
            locate(name)


def test_a_folder_to_be_listed_may_be_a_link_but_not_be_named_outside(folders):
    root, outside = folders
    check_folder(root, root / "folder", "list.yaml")
    check_folder(root, root, "list.yaml")
    for folder in (root / ".." / "root-secrets", outside, Path("/etc")):
        with pytest.raises(UsageError, match=r"'list\.yaml' names .* outside of .*; say where"):
            check_folder(root, folder, "list.yaml", "say where")
