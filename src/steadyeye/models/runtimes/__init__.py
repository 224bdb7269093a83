"""Running a network: on ONNX Runtime, torch, GPUs or a Python function."""

import os

# read when ONNX Runtime is imported, which from 1.29 on sends names and hashes of models
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
