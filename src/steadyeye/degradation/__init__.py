"""What degradation operators share: their streams, their seam, and the sweep over levels."""
