"""Guidelines of the stages: texts of the package or of the set, versions, safe HTML, exports."""

import json

import pytest
from review_toys import YES, Review, draw, source

from steadyeye.core.errors import UsageError
from steadyeye.data.annotations import review_set
from steadyeye.review.interchange.formats import export_formats
from steadyeye.review.protocol.guidelines import find_file, note_shown, read_guidelines
from steadyeye.review.protocol.stages import STAGES
from steadyeye.review.web.pages import render_guidelines


@pytest.fixture
def folder(tmp_path):
    draw([source()], tmp_path / "set")
    return review_set.read(tmp_path / "set")


def test_each_stage_has_a_text_and_its_version_changes_with_it(tmp_path):
    versions = {name: read_guidelines(tmp_path, name).version for name in STAGES}
    assert len(set(versions.values())) == len(STAGES)
    for name in STAGES:
        html = render_guidelines(read_guidelines(tmp_path, name).text)
        assert html.startswith(f"<h2>{STAGES[name].title}</h2>")
    own = tmp_path / "guidelines"
    own.mkdir()
    text_versions = set()
    for text in ("# Ours", "# Ours, again"):
        (own / "pairs.md").write_text(text)
        text_versions.add(read_guidelines(tmp_path, "pairs").version)
    (own / "cat.png").write_bytes(b"picture")
    text_versions.add(read_guidelines(tmp_path, "pairs").version)
    assert len(text_versions | set(versions.values())) == len(STAGES) + 3
    assert read_guidelines(tmp_path, "anchors").version == versions["anchors"]
    (own / "pairs.md").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot read the guidelines"):
        read_guidelines(tmp_path, "pairs")


def test_nothing_in_a_text_becomes_a_script_or_leaves_the_set():
    html = render_guidelines(
        "<script>alert(1)</script>\n\n[a](javascript:alert(1)) [b](https://example.org)\n\n"
        '![x](../../secret.png) ![y](https://elsewhere.org/y.png "\\" onload=alert(1)")'
    )
    assert "<script" not in html
    assert 'href="javascript' not in html
    assert 'rel="noopener noreferrer"' in html
    assert 'src="/guidelines/secret.png"' in html
    assert 'src="/guidelines/y.png"' in html
    assert '" onload' not in html


def test_links_out_of_the_folder_are_not_followed(tmp_path):
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "guidelines").mkdir()
    (tmp_path / "guidelines" / "link.png").symlink_to(tmp_path / "secret.png")
    (tmp_path / "guidelines" / "own.png").write_bytes(b"own")
    assert find_file(tmp_path, "link.png") is None
    assert find_file(tmp_path, "../secret.png") is None
    assert find_file(tmp_path, "own.png").read_bytes() == b"own"


def test_each_version_that_was_shown_is_part_of_the_export(folder, tmp_path):
    review = Review(folder, stages={"pairs": 1})
    review.everything("pairs", lambda _: YES)
    own = folder.root / "guidelines"
    own.mkdir()
    for text in ("old", "new", "new"):
        (own / "pairs.md").write_text(text)
        with review.db.writing() as c:
            note_shown(c, read_guidelines(folder.root, "pairs"))
    (own / "cat.png").write_bytes(b"picture")
    with review.db.reading() as c:
        export_formats(c, folder, review.plan, tmp_path / "out", names=("set",), partial=False)
    guidelines = json.loads((tmp_path / "out" / "guidelines.json").read_text())["guidelines"]
    assert [(guideline["stage"], guideline["text"]) for guideline in guidelines] == [
        ("pairs", "old"),
        ("pairs", "new"),
    ]
    assert (tmp_path / "out" / "guidelines" / "cat.png").read_bytes() == b"picture"
    assert len(review_set.read(tmp_path / "out").frames) == len(folder.frames)
