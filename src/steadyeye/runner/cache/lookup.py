"""Looks up and stores the answers of a model: keys, stores and limits."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MethodType

import numpy as np

from steadyeye.core import plugins
from steadyeye.core.boxes import Detections
from steadyeye.core.errors import SampleError
from steadyeye.core.seeds import fingerprint
from steadyeye.core.storage.run_lock import identify_machine
from steadyeye.core.types import Image, Model, Sample
from steadyeye.data.images.image_file import ImageFile
from steadyeye.runner.cache import answer_code, settings
from steadyeye.runner.cache.codec import Answer, CachedAnswer
from steadyeye.runner.cache.eviction import SPARE, shrink
from steadyeye.runner.cache.store import FILE, Store, open_store

KEY_SIZE = 32  # bytes
MODEL = "model"


@dataclass(frozen=True, eq=False)
class Cache:
    """The answers of one model to one source in a store.

    A key is made of the model's fingerprint, the code and the packages that the answer depends on,
    and what the image is. `data`: the name of the source, for listing. `spec`: of the model, None
    for an object. `swept`: whether its images are fitted already, as those of a sweep are. `width`:
    of its scores, None for a detector. `stores`: whether new answers are stored. `marks`: of the
    code behind the answers, computed once.
    """

    store: Store
    model: Model
    data: str
    spec: str | None
    swept: bool
    width: int | None
    stores: bool = True
    marks: dict[object, str] = field(default_factory=dict, repr=False)

    def find_keys(self, samples: Sequence[Sample]) -> list[bytes | None]:
        """The keys of the answers to samples; None for a sample that only its pixels identify.

        A file is not read again if it is unchanged since its content was hashed.
        """
        stamps = [_find_stamp(sample) for sample in samples]
        known = self.store.read_names([stamp for stamp in stamps if stamp])
        names = [
            known.get(stamp or "") or _read_name(sample)
            for stamp, sample in zip(stamps, samples, strict=True)
        ]
        name_of = {stamp: name for stamp, name in zip(stamps, names, strict=True) if stamp and name}
        self.store.put_names({stamp: n for stamp, n in name_of.items() if stamp not in known})
        mark = self._mark_model()
        keys: list[bytes | None] = []
        for sample, name in zip(samples, names, strict=True):
            if not name:
                keys.append(None)
                continue
            text = f"{mark}\n{self._mark_image(sample)}\n{name}"
            keys.append(hashlib.blake2b(text.encode(), digest_size=KEY_SIZE).digest())
        return keys

    def hash_pixels(self, image: Image) -> bytes:
        """The key of the answer to an image that its source does not identify."""
        text = f"{self._mark_model()}\npixels {image.shape}\n"
        digest = hashlib.blake2b(text.encode(), digest_size=KEY_SIZE)
        digest.update(np.ascontiguousarray(image).data)
        return digest.digest()

    def put(self, answers: Mapping[bytes, CachedAnswer]) -> None:
        """Stores answers under their keys, where `stores`."""
        if self.stores:
            self.store.put((self.model.fingerprint, self.model.name, self.data), answers)

    def fits(self, answer: Answer) -> bool:
        """Whether an answer has the form of the model's answers."""
        if isinstance(answer, Detections):
            return self.width is None
        return self.width is not None and answer.shape == (self.width,)

    def _mark_model(self) -> str:
        """The part of the key shared by all answers: the model's fingerprint, code and packages.

        Another version of ONNX Runtime may differ in the last bit.
        """
        if MODEL not in self.marks:
            modules = plugins.modules("models", self.spec) if self.spec else ()
            code = answer_code.mark([self.model], modules, self.store.folder)
            fitted = "fitted" if self.swept else "whole"
            self.marks[MODEL] = fingerprint(self.model.fingerprint, fitted, code)
        return self.marks[MODEL]

    def _mark_image(self, sample: Sample) -> str:
        """The part of the key for the code that makes the image of a sample."""
        shape = answer_code.image_shape(sample)
        if shape not in self.marks:
            self.marks[shape] = answer_code.mark([sample], (), self.store.folder)
        return self.marks[shape]


def _find_stamp(sample: Sample) -> str | None:
    file = sample.key.__self__ if isinstance(sample.key, MethodType) else None
    return file.stamp() if isinstance(file, ImageFile) else None


def _read_name(sample: Sample) -> str | None:
    try:
        return sample.key() if sample.key else None
    except SampleError:
        return None  # decoding it says what is wrong


def open_configured_store(setting: str) -> Store | None:
    """The store that a job's `cache` names; None if answers are not stored."""
    folder = settings.folder(setting)
    return open_store(folder) if folder else None


@contextmanager
def closing_store(store: Store | None, say: Callable[[str], None]) -> Iterator[None]:
    """At the end of the block, records the used groups, applies the limit and reports problems."""
    most = settings.limit()
    if store:
        # what a run writes must be able to stay when the store is brought to its limit
        store.room = int(most * SPARE)
    try:
        yield
    finally:
        if store:
            store.finish()
            shrink(store, most)
            for line in list_problems(store):
                say(line)


def list_problems(store: Store) -> tuple[str, ...]:
    """Notes for the user on a store: that it is full, or no longer used."""
    full = f"the cache is full at {settings.limit() / 1e9:g} GB; {settings.LIMIT} sets its size"
    return (*((full,) if store.room <= 0 else ()), *((store.problem,) if store.problem else ()))


@dataclass(frozen=True)
class SharedStore:
    """A description of a store for another process; `room`: bytes that the process may write.

    `file`: the device and the number of its file, `machine`: where that was read. Nothing else is
    used: SQLite's shared memory, by which writers agree, does not reach beyond a machine.
    """

    folder: Path
    file: tuple[int, int]
    machine: str
    room: int

    def join(self) -> Store | None:
        """The driver's store in a worker; None if the worker is on another machine."""
        if identify_machine() != self.machine or _identify_file(self.folder) != self.file:
            return None
        store = open_store(self.folder)
        store.room = self.room
        return store


def share_store(store: Store, workers: int) -> SharedStore | None:
    """The store for a number of worker processes; None if it cannot be used."""
    if not store.ready():
        return None
    file = _identify_file(store.folder)
    return SharedStore(store.folder, file, identify_machine(), store.room // workers)


def _identify_file(folder: Path) -> tuple[int, int]:
    try:
        stat = (folder / FILE).stat()
    except OSError:
        return 0, 0
    return stat.st_dev, stat.st_ino
