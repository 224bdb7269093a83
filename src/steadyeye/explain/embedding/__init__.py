"""Regions of images as vectors: crops, neighbours, clusters, density ratios."""
