"""Ultralytics' exports to LiteRT, made by its package and litert-torch, against its `predict`.

Run by `make integrations`; the networks have random weights, as none are to be had here.
"""

import tempfile
from pathlib import Path

from check_ultralytics import check_network


def main():
    with tempfile.TemporaryDirectory() as name:
        check_network("yolov8n", Path(name), format="litert")
        check_network("yolo26n", Path(name), format="litert", end2end=True)


if __name__ == "__main__":
    main()
