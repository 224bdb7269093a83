"""Boxes, labels and reviews as files and formats hold them."""
