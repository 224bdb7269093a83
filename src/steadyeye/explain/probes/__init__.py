"""Probes: images changed to explain detections, one a file; see `steadyeye.explain`."""
