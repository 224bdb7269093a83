"""Videos as frames: decoding, labels, shot detection, sampling anchors, building pm-sets."""
