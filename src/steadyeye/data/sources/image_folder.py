"""Single images, one folder a class."""

from collections.abc import Sequence
from dataclasses import dataclass

from steadyeye.core.errors import unknown
from steadyeye.core.format import number_of
from steadyeye.core.seeds import fingerprint
from steadyeye.core.short_repr import source_in_short
from steadyeye.core.storage.files import Place, find_missing, relative_path
from steadyeye.core.types import Classes, Labels, Sample
from steadyeye.data.classes.class_lists import classes_of_names, list_positions, read
from steadyeye.data.images import image_file
from steadyeye.data.images.file_copies import note_copies
from steadyeye.data.images.image_header import note_orientations
from steadyeye.data.video.paths import compose, list_files, resolve_path, unread_notes


@source_in_short
@dataclass(frozen=True)
class _Images:
    name: str
    classes: Classes | None
    columns: tuple[str, ...]
    fingerprint: str
    ids: Sequence[str]
    paths: tuple[Place, ...]
    truths: Sequence[Labels]
    notes: tuple[str, ...]

    def missing(self) -> Sequence[str]:
        return find_missing(self.paths)

    def files(self) -> Sequence[Place]:
        return self.paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Sample:
        image = image_file.ImageFile(self.paths[index])
        return Sample(self.ids[index], image, self.truths[index], key=image.key)


def image_folder(root: str, classes: str | None = None) -> _Images:
    """Images in one folder per class; images directly in the root are unlabelled.

    `root`: the folder of the folders. A folder is named by a class name or a WordNet id. `classes`:
    a known list (`imagenet1k`) or a file with the class list; by default the sorted folder names.
    Raises `UsageError` for a folder without images, and for one whose name is no class.

    Example: `image_folder(root='val', classes='imagenet1k')`
    """
    base = resolve_path(root)
    paths = tuple(list_files(base, image_file.SUFFIXES))
    base = base if base.is_dir() else base.parent
    ids = [relative_path(path, base).as_posix() for path in paths]
    folders = [id_.partition("/")[0] if "/" in id_ else "" for id_ in ids]
    listed_names = sorted(set(folders) - {""})
    known = read(classes) if classes else None
    if listed_names and not classes:
        known = classes_of_names(listed_names)
    position = list_positions(known) if known else {}
    for folder in listed_names:
        if compose(folder) not in position:
            raise unknown("class", folder, position)
    truths = tuple((position[compose(folder)],) if folder else () for folder in folders)
    marks = [f"{id_}:{path.stat().st_size}" for id_, path in zip(ids, paths, strict=True)]
    return _Images(
        name=base.name,
        classes=known,
        columns=("truth",) if listed_names else (),
        fingerprint=fingerprint(*marks, repr(known)),
        ids=ids,
        paths=paths,
        truths=truths,
        notes=(
            f"{number_of(len(paths), 'image')} in {number_of(len(listed_names), 'class folder')}",
            *note_orientations(paths),
            *note_copies(ids, paths, truths),
            *unread_notes(base, image_file.SUFFIXES),
        ),
    )
