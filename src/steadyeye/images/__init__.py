"""Pixels: decoding files, preparing model input, writing thumbnails."""
