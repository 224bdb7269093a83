"""A classifier of light and dark, and a short clip for it."""

import cv2
import numpy as np


def dark(images):
    """Scores by the light of the picture."""
    light = images.reshape(len(images), -1).mean(axis=1) / 255
    return np.stack([1 - light, light], axis=1)


def light(images):
    """As `dark`, mistaken about pictures of middling light."""
    return dark(np.where(images < 110, 0, 255))


def write_clip(root):
    """Writes twelve pictures, each lighter than the one before; the spec of their pm-sets."""
    (root / "clip").mkdir()
    for i in range(12):
        cv2.imwrite(str(root / "clip" / f"{i:03d}.png"), np.full((16, 16, 3), 20 * i, np.uint8))
    (root / "labels.csv").write_text("video,labels\nclip,dark\nother,light\n")
    return f"frames(path='{root / 'clip'}', anchors=6, k=2, labels='{root / 'labels.csv'}')"
