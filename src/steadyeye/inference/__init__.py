"""Running a network: images through a recipe, on ONNX Runtime, torch, GPUs or a function."""
