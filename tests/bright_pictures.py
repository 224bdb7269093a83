"""Pictures of rising brightness: the first half in a folder `dark`, the rest in `bright`."""

import numpy as np
import simplejpeg


def written(root, count, step):
    """`root` with so many JPEG files of 24 × 32 pixels, each `step` grey levels above the last."""
    for i in range(count):
        folder = root / ("dark" if i < count // 2 else "bright")
        folder.mkdir(exist_ok=True)
        grey = np.full((24, 32, 3), i * step, dtype=np.uint8)
        (folder / f"{i:03d}.jpg").write_bytes(simplejpeg.encode_jpeg(grey))
    return root
