"""Readers and writers of boxes, labels and reviews in files of all formats."""
