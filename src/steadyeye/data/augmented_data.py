"""Data of Python behind an augmentation of MAITE: batches of images, targets and metadata."""

from typing import Any

import numpy as np

from steadyeye.core.errors import SampleError, UsageError
from steadyeye.data.python_items import split_item, to_rgb


class AugmentedData:
    """Items of data as an augmentation returns them, a batch of one at a time."""

    def __init__(self, data: Any, augmentation: Any) -> None:
        self.data = data
        self.augmentation = augmentation

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        name = f"item {index}"
        item = self.data[index]
        image, target = split_item(item, name)
        metadata = item[2] if isinstance(item, tuple) and len(item) == 3 else {"id": index}
        pixels = np.ascontiguousarray(np.moveaxis(to_rgb(image, name), -1, 0))
        try:
            images, targets, _ = self.augmentation(([pixels], [target], [metadata]))
            return images[0], targets[0]
        except Exception as error:
            raise SampleError(
                f"the augmentation fails on {name}: {type(error).__name__}: {error}"
            ) from error

    def __getattr__(self, name: str) -> Any:
        # the names of the classes, wherever the data keep them
        if name in ("classes", "features", "metadata"):
            return getattr(self.data, name)
        raise AttributeError(name)


def augment(data: Any, augmentation: Any) -> AugmentedData:
    """The data as an augmentation of MAITE returns them; (image, target) of each item.

    It gets ([image], [target], [metadata]) with the image as (3, h, w) uint8 RGB. Raises
    `UsageError` for what is no augmentation, and for data without a length.
    """
    if not callable(augmentation):
        raise UsageError(
            f"augmentation={augmentation!r:.100} cannot be called; give one of MAITE, which takes "
            "and returns (images, targets, metadata)"
        )
    if not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise UsageError(f"cannot augment {type(data).__name__}; give a list or a dataset")
    return AugmentedData(data, augmentation)
