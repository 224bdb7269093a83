"""Odd names, links, foreign files, clocks and locales: the same bytes, or one line."""

import shutil
import subprocess

import faulty_commands
import pytest
from forked import refused

from steadyeye.core import plugins
from steadyeye.core.errors import UsageError
from steadyeye.core.spec import Spec
from steadyeye.core.storage.files import clear_folder, place

BY_NAME = faulty_commands.BY_NAME
BAD = "\udcff\udcfe"
NAMES = [
    'it\'s "q" 100%s%d #?',
    "line\nbreak",
    "\N{FOX FACE} \N{LATIN CAPITAL LETTER I WITH DOT ABOVE}",
    "x" * 200,
    "[1]*,a=b$HOME",
]
LOCALES = ["tr_TR.UTF-8", "de_DE.UTF-8"]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return faulty_commands.write_world(tmp_path_factory.mktemp("world").resolve() / "here")


def differences(world, name):
    now, end = faulty_commands.snapshot(world.work), world.ends[name]
    return [file for file in sorted({*now, *end}) if now.get(file) != end.get(file)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES, ids=["signs", "lines", "letters", "long", "patterns"])
def test_data_models_and_outputs_of_any_name(world, name):
    world.renew(BY_NAME["run"])
    shutil.copytree(world.root / "in" / "clip", world.work / name / name)
    shutil.copy(world.root / "in" / "classes.json", world.work / name)
    model = f"callable(path='py:light_toys:dark', classes={f'{name}/classes.json'!r})"
    data = f"frames(path={f'{name}/{name}'!r}, anchors=6, k=2)"
    out = f"o {name}/{name}"
    words = ("--model", model, "--data", data, "--no-cache", "--out", out)
    for command in ((*faulty_commands.RUN, *words), ("report", out)):
        code, stderr, _ = world.run(faulty_commands.Case("odd", command))
        assert not code, stderr


def test_names_that_are_no_text_are_errors_in_one_line(tmp_path):
    line = refused("report", f"runs/{BAD}", cwd=tmp_path)
    reason = (
        "the argument 'runs/\\udcff\\udcfe' is not UTF-8; write it in UTF-8, or rename its file"
    )
    assert line == f"steadyeye: {reason}"
    with pytest.raises(UsageError, match="is not a name in UTF-8; rename it"):
        place(BAD)
    with pytest.raises(UsageError, match="3 is no path; give a string or a pathlib"):
        place(3)
    (tmp_path / "a").mkdir()
    picture = b"\x89PNG\r\n\x1a\n"
    (tmp_path / "a" / f"{BAD}.png").write_bytes(picture)
    with pytest.raises(UsageError, match=r"udcff.* is not UTF-8; rename the file"):
        plugins.build("sources", Spec("image_folder", {"root": str(tmp_path)}))


def test_only_what_is_ours_is_removed_from_an_output(tmp_path):
    own_names = (".run.json.12.34.tmp", f".{'a' * 16}.tmp", ".line\nbreak.1.2.tmp")
    others = (".notes.tmp", "a.1.2.tmp", ".profile", ".a.tmp.1")
    (tmp_path / "below").mkdir()
    for name in (*own_names, *others):
        (tmp_path / "below" / name).touch()
    clear_folder(tmp_path)
    assert {path.name for path in (tmp_path / "below").iterdir()} == set(others)


@pytest.mark.slow
def test_an_output_that_is_a_link_or_holds_links(world):
    case = BY_NAME["run"]
    world.learn(case)
    for link in ("runs/a", "runs/a/cells"):
        world.renew(case)
        (world.work / "in2").mkdir()
        (world.work / link).parent.mkdir(parents=True)
        (world.work / link).symlink_to(world.work / "in2")
        code, stderr, _ = world.run(case)
        assert not code, stderr
        for name, content in world.ends["run"].items():
            assert (world.work / name).read_bytes() == content


@pytest.mark.slow
@pytest.mark.parametrize("years", [-60, 100])
@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_killed_run_continues_under_another_clock(world, years):
    case = BY_NAME["run"]
    world.learn(case)
    world.renew(case)
    world.run(case, below=world.work, at=len(world.calls["run"]) // 2, error=0)
    code, stderr, _ = world.run(case, below=world.work, clock=years * 365 * 86_400)
    assert not code, stderr
    assert not differences(world, "run")


def is_installed(name):
    locales = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout
    return name.replace("UTF-8", "utf8") in locales.split()


@pytest.mark.slow
@pytest.mark.parametrize("name", LOCALES)
@pytest.mark.parametrize("command", ["run", "score", "degrade", "sample"])
def test_locales_change_no_byte(world, name, command, monkeypatch):
    if not is_installed(name):
        pytest.skip(f"{name} is not installed; .ci/run installs it")
    world.learn(BY_NAME[command])
    monkeypatch.setenv("LC_ALL", name)
    monkeypatch.setenv("LANG", name)
    world.renew(BY_NAME[command])
    code, stderr, _ = world.run(BY_NAME[command])
    assert not code, stderr
    assert not differences(world, command)
