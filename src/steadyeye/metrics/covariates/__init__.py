"""Measurements of frames and frame pairs, and their relation to mistakes."""
