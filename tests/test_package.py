"""The published files: the wheel and the sdist, their metadata, and the files around them."""

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import yaml

from steadyeye.core.errors import UsageError
from steadyeye.report.render import vega

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "steadyeye"
HOME = "https://github.com/steadyeye/steadyeye"
RAW = "https://raw.githubusercontent.com/steadyeye/steadyeye"
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def execute(*command, cwd, **environment):
    done = subprocess.run(
        [*map(str, command)],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The files of this checkout that git knows or would know, without git."""
    folder = tmp_path_factory.mktemp("checkout")
    list_command = ("git", "ls-files", "--cached", "--others", "--exclude-standard")
    for name in execute(*list_command, cwd=ROOT).splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def built(checkout):
    """The sdist of a checkout whose last tag is v1.2.3, and the wheel built from that sdist."""
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    execute(*git, "init", "-q", cwd=checkout)
    execute(*git, "add", "-A", cwd=checkout)
    execute(*git, "commit", "-q", "-m", "all", cwd=checkout)
    execute(*git, "tag", "v1.2.3", cwd=checkout)
    execute(sys.executable, "-m", "uv", "build", "--quiet", cwd=checkout)
    (sdist,), (wheel,) = (list((checkout / "dist").glob(end)) for end in ("*.tar.gz", "*.whl"))
    return sdist, wheel


@pytest.mark.slow
def test_the_tag_is_the_version(built):
    assert built[0].name == "steadyeye-1.2.3.tar.gz"
    assert built[1].name == "steadyeye-1.2.3-py3-none-any.whl"


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(built, checkout):
    with zipfile.ZipFile(built[1]) as wheel:
        wheel_names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        licences = {Path(name).name for name in wheel.namelist() if "/licenses/" in name}
        script = wheel.read("steadyeye/report/render/static/vega.js").decode()
    sources = (f for f in (checkout / "src").rglob("*") if f.is_file())
    source_names = {f.relative_to(checkout / "src").as_posix() for f in sources}
    assert wheel_names == source_names | {"steadyeye/report/render/static/vega.js"}
    assert "steadyeye/py.typed" in wheel_names
    assert {"LICENSE", "NOTICE", "VEGA_LICENSES.txt", "WORDNET_LICENSE.txt"} <= licences
    assert script == vega.bundle_vega()
    assert "</script" not in script


@pytest.mark.slow
def test_the_sdist_holds_the_sources_and_no_data(built):
    with tarfile.open(built[0]) as sdist:
        sdist_names = {name.partition("/")[2] for name in sdist.getnames()}
        size = sum(member.size for member in sdist.getmembers())
    assert {"LICENSE", "README.md", "hatch_build.py", "src/steadyeye/__init__.py"} <= sdist_names
    assert {"tests/test_package.py", "CHANGELOG.md", "constraints.txt"} <= sdist_names
    first = {name.partition("/")[0] for name in sdist_names}
    assert not first & {"runs", "shared", "site", ".venv", "dist"}
    assert size < 15e6


@pytest.mark.slow
def test_the_description_on_the_package_index(built):
    with zipfile.ZipFile(built[1]) as wheel:
        (name,) = (n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(wheel.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload(decode=True).decode() == (ROOT / "README.md").read_text()
    assert metadata["Author"] == "The steadyeye authors"
    assert metadata["Requires-Python"] == ">=3.11"
    for url in metadata.get_all("Project-URL"):
        assert url.partition(", ")[2].startswith(("https://github.com/", "https://steadyeye."))


@pytest.mark.slow
def test_without_git_the_version_says_that_it_is_none(checkout, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(checkout, bare, ignore=shutil.ignore_patterns(".git", "dist"))
    execute(sys.executable, "-m", "uv", "build", "--quiet", "--sdist", cwd=bare)
    assert [file.name for file in (bare / "dist").glob("*.gz")] == ["steadyeye-0.0.0.tar.gz"]


def test_the_charts_script_is_bundled_by_the_version_that_is_pinned():
    (pinned,) = re.findall(r'"(vl-convert-python==\S+)"', (ROOT / "pyproject.toml").read_text())
    assert pinned in (ROOT / "constraints.txt").read_text().splitlines()


def test_a_checkout_that_was_never_built_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(vega, "FILE", tmp_path / "vega.js")
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError, match="pip install -e"):
        # not from what an earlier test kept
        vega.read_vega.__wrapped__()


def test_links_of_the_readme_lead_somewhere_from_anywhere():
    """The package index shows README.md without the files around it."""
    for link in LINK.findall((ROOT / "README.md").read_text()):
        assert link.startswith("https://"), f"write {HOME}/blob/main/{link}"
        for start in (f"{HOME}/blob/main/", f"{RAW}/main/"):
            if link.startswith(start):
                assert_there(link.removeprefix(start), ROOT)


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_of_other_files_lead_somewhere(name):
    for link in LINK.findall((ROOT / name).read_text()):
        if not link.startswith("https://"):
            assert_there(link, ROOT)


def assert_there(link, folder):
    """Whether a file is there, with the heading that the link names."""
    path, _, heading = link.partition("#")
    assert (folder / path).is_file(), link
    if heading:
        titles = re.findall(r"^#+ (.*)$", (folder / path).read_text(), re.MULTILINE)
        assert heading in [re.sub(r"[^\w -]", "", t).lower().replace(" ", "-") for t in titles]


def test_contributing_names_files_and_every_folder():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    steps = text.partition("## The way of one image")[2].partition("\n## ")[0]
    for name in re.findall(r"`([\w/]+(?:\.py|/))`", steps.replace("`src/steadyeye/`", "")):
        assert (PACKAGE / name).exists(), name
    packages = {f"src/steadyeye/{f.parent.name}" for f in PACKAGE.glob("*/__init__.py")}
    listed_folders = set(re.findall(r"^\| `([\w/]+)` \|", text, re.MULTILINE))
    assert listed_folders == packages | {"tests", "docs", "examples", "benchmarks", "tools"}


def test_the_citation_says_what_the_package_says():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(cited)
    assert cited["title"].partition(":")[0] == "steadyeye"
    assert cited["license"] == "Apache-2.0"
    assert cited["repository-code"] == HOME
    released = re.findall(r"^## \[(\d\S*)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert cited.get("version") == (released[0] if released else None)


def test_workflows_test_every_version_that_is_declared():
    declared = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert ci["jobs"]["core"]["strategy"]["matrix"]["python"] == declared
    release = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    assert release["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    # `on` is a truth value in YAML 1.1
    assert release[True]["push"]["tags"] == ["v*"]
