"""What is measured of frames and of pairs of them, and which of it goes with mistakes."""
