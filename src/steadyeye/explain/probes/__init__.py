"""Probes, one per file: images changed to explain detections; see `steadyeye.explain`."""
