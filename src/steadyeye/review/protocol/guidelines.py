"""Guidelines for reviewers: one text per stage, from the set or from this package."""

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import IntegrityError

from steadyeye.core.storage.text_files import read_text
from steadyeye.review.database import shown_guidelines

FOLDER = "guidelines"  # of a set, beside set.json: a file STAGE.md, and pictures
PICTURES: Mapping[str, str] = {
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".png": "image/png",
    ".webp": "image/webp",
}
"""Suffix → media type of pictures that the texts may show."""
DEFAULTS = Path(__file__).resolve().parents[1] / "guidelines"


@dataclass(frozen=True)
class Guidelines:
    """The text of a stage in Markdown. `version`: changes with the text and its pictures."""

    stage: str
    text: str
    version: str


def read_guidelines(root: Path, stage: str) -> Guidelines:
    """The guidelines of a stage: of a set's folder, or else of this package.

    Raises `UsageError` for a file that is no text in UTF-8.
    """
    own = find_file(root, f"{stage}.md")
    path = own or DEFAULTS / f"{stage}.md"
    text = read_text(path, "guidelines")
    pictures = [(file.name, file.stat().st_size) for file in list_pictures(root)] if own else []
    digest = hashlib.sha256(repr((text, pictures)).encode())
    return Guidelines(stage, text, digest.hexdigest()[:12])


def find_file(root: Path, name: str) -> Path | None:
    """A file of a set's guidelines; None where there is none, or it links out of the folder."""
    path = root / FOLDER / name
    inside = path.is_file() and path.resolve() == root.resolve() / FOLDER / name
    return path if inside else None


def list_pictures(root: Path) -> Sequence[Path]:
    """The pictures of a set's guidelines, by name."""
    folder = root / FOLDER
    names = sorted(file.name for file in folder.iterdir()) if folder.is_dir() else []
    files = (find_file(root, name) for name in names if Path(name).suffix.lower() in PICTURES)
    return [file for file in files if file]


def note_shown(connection: Connection, guidelines: Guidelines) -> None:
    """Stores a version that a reviewer sees, once, with its text and the time of the first view."""
    same = (shown_guidelines.c.stage == guidelines.stage) & (
        shown_guidelines.c.version == guidelines.version
    )
    if connection.execute(select(shown_guidelines.c.version).where(same)).first():
        return
    values = {"version": guidelines.version, "text": guidelines.text, "shown_at": time.time()}
    try:
        with connection.begin_nested():
            connection.execute(insert(shown_guidelines).values(stage=guidelines.stage, **values))
    except IntegrityError:
        pass  # another page was shown it at the same time


def list_shown(connection: Connection) -> Sequence[Mapping[str, Any]]:
    """Every version that was shown: `stage`, `version`, `text`, and `shown_at`, when first."""
    query = select(shown_guidelines).order_by(shown_guidelines.c.shown_at)
    return [dict(row._mapping) for row in connection.execute(query)]
