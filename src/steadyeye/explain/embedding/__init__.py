"""Regions of images as feature vectors: crops, neighbours, clusters, density ratios."""
