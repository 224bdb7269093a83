"""Coloured squares, a detector of them that can be fooled, and files of both for `explain`."""

import json
import time

import cv2
import numpy as np

SIDE = 64
COLOURS = {"a": (1, 0, 0), "b": (0, 1, 0)}


def square(image, box, name):
    """Draws a square whose rows darken downwards, so that their order is its shape."""
    x0, y0, x1, y1 = box
    rows = np.linspace(250, 190, y1 - y0)[:, None, None]
    image[y0:y1, x0:x1] = rows * np.array(COLOURS[name])
    return image


def detector(images):
    """`a` is certain where rows darken downwards; `b` is certain on a dark image, come what may."""
    return [found(image) for image in images]


# two scores is all it has: none is cut
detector.threshold = 0.0


def cut(images):
    """As a detector that keeps what it is less sure of than 0.5 to itself."""
    return [tuple(each[of[1] >= 0.5] for each in of) for of in detector(images)]


def slow(images):
    time.sleep(0.05 * len(images))
    return detector(images)


slow.threshold = 0.0


def found(image):
    boxes, scores, labels = [], [], []
    values = image.astype(int)
    for label, name in enumerate(COLOURS):
        main = int(np.argmax(COLOURS[name]))
        rest = np.delete(values, main, axis=2).max(axis=2)
        there = (values[..., main] > 150) & (rest < 60)
        count, parts = cv2.connectedComponents(there.astype(np.uint8))
        for part in range(1, count):
            rows, columns = np.nonzero(parts == part)
            box = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
            inside = values[box[1] : box[3], box[0] : box[2], main]
            falling = (np.diff(inside.mean(axis=1)) < 0).all()
            certain = falling if name == "a" else values[0].mean() < 100
            boxes.append(box)
            scores.append(0.9 if certain else 0.4)
            labels.append(label)
    return np.array(boxes).reshape(-1, 4), np.array(scores), np.array(labels)


def write(root, images=6):
    """COCO files: in each image an `a` as labelled, a `b` labelled `a`, a `b` nobody labelled."""
    (root / "images").mkdir(parents=True)
    (root / "classes.json").write_text(json.dumps(list(COLOURS)))
    entries, annotations = [], []
    for number in range(images):
        image = np.full((SIDE, SIDE, 3), 40, dtype=np.uint8)
        boxes = [(4 + number, 4, 24 + number, 24), (36, 6, 56, 26), (10, 40, 26, 56)]
        for box, name in zip(boxes, "abb", strict=True):
            square(image, box, name)
        cv2.imwrite(str(root / "images" / f"{number}.png"), image[..., ::-1])
        entries.append({"id": number, "file_name": f"{number}.png", "height": SIDE, "width": SIDE})
        for x0, y0, x1, y1 in boxes[:2]:
            annotations.append(
                {
                    "id": len(annotations),
                    "image_id": number,
                    "category_id": 1,
                    "bbox": [x0, y0, x1 - x0, y1 - y0],
                    "segmentation": [[x0, y0, x1, y0, x1, y1, x0, y1]],
                }
            )
    categories = [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
    content = {"images": entries, "annotations": annotations, "categories": categories}
    (root / "boxes.json").write_text(json.dumps(content))
    (root / "behind").mkdir()
    greys = {"dark": 30, "darker": 20, "darkest": 10, "light": 150, "lighter": 170, "bright": 200}
    for name, grey in greys.items():
        plain = np.full((50, 80, 3), grey, dtype=np.uint8)
        cv2.imwrite(str(root / "behind" / f"{name}.png"), plain)
    red = square(np.full((80, 80, 3), 40, dtype=np.uint8), (20, 20, 60, 60), "a")
    cv2.imwrite(str(root / "behind" / "no.png"), red[..., ::-1])
    return f"coco(annotations='{root}/boxes.json', images='{root}/images')"
