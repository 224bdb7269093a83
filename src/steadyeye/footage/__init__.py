"""Videos as frames: reading them, their labels and cuts, drawing anchors, building pm-sets."""
