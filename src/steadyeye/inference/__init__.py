"""Running a network: one image at a time through a recipe, on ONNX Runtime, torch or a function."""
