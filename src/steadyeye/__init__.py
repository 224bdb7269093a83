"""steadyeye: how steady a vision model stays when the world changes naturally."""

__version__ = "0.1.0"
