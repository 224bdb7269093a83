"""Detectors: decoding raw outputs into boxes, and training them."""
