"""What degradation operators share: random streams, their interface, and the sweep over levels."""
