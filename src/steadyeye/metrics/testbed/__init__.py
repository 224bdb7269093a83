"""The published testbed of models, and the line through it."""
