"""Degradation of images: the operator interface, random streams, the sweep over levels."""
