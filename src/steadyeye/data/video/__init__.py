"""Videos as frames: decoding, labels, shots, drawing anchors, building pm-sets."""
