"""The published testbed of models, and the line fitted to it."""
