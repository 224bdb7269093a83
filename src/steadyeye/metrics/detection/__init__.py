"""What metrics of detectors share: matching boxes to ground truth, average precision."""
