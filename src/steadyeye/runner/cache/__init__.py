"""Predictions stored by the content of images, so that no model runs twice on the same input."""
