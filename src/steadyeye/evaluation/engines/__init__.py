"""Engines: where the shards of a cell are computed."""
