"""Coloured squares of which the reference has no blue ones, a detector of them, an embedder."""

import json

import cv2
import numpy as np

COLOURS = {"red": (220, 30, 30), "green": (30, 220, 30), "blue": (30, 30, 220)}
CLASSES = ("red", "green")
BOX = (12, 10, 32, 30)


def detector(images):
    """Red is red; all else is green, blue above all."""
    return [found(image) for image in images]


def found(image):
    red, green, blue = image[20, 20].astype(int)
    if max(red, green, blue) < 150:
        return np.zeros((0, 4)), [], []
    score = 0.95 if blue > max(red, green) else 0.9
    return [BOX], [score], [0 if red > max(green, blue) else 1]


def means(images):
    """The mean colour of the middle of each image, as a vector."""
    return images[:, 4:12, 4:12].reshape(len(images), -1, 3).mean(axis=1)


def write(root, name, colours, seed):
    """A COCO set of one square an image, of these colours in turn, each of another shade."""
    rng = np.random.default_rng(seed)
    (root / name).mkdir(parents=True)
    entries, annotations = [], []
    for number, colour in enumerate(colours):
        image = np.full((48, 48, 3), 40, dtype=np.uint8)
        x0, y0, x1, y1 = BOX
        image[y0:y1, x0:x1] = np.array(COLOURS[colour]) + rng.integers(-25, 26, 3)
        cv2.imwrite(str(root / name / f"{number:02}.png"), image[..., ::-1])
        entries.append({"id": number, "file_name": f"{number:02}.png", "height": 48, "width": 48})
        annotations.append(
            {
                "id": number,
                "image_id": number,
                "category_id": 1 + list(COLOURS).index(colour),
                "bbox": [x0, y0, x1 - x0, y1 - y0],
            }
        )
    categories = [{"id": 1 + i, "name": each} for i, each in enumerate(COLOURS)]
    content = {"images": entries, "annotations": annotations, "categories": categories}
    (root / f"{name}.json").write_text(json.dumps(content))
    return f"coco(annotations='{root}/{name}.json', images='{root}/{name}')"
