"""Regions of images as vectors: how they are cut out, and where one set of them is thin."""
