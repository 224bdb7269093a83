"""What degradation operators share: random streams, the interface, the sweep over levels."""
