"""What numbers about detections share: matching boxes to ground truth, average precision."""
