"""Running a network: on ONNX Runtime, torch, GPUs or a Python function."""
