"""Runtimes of networks: ONNX Runtime, torch, GPUs, Python functions."""

import os

# read when ONNX Runtime is imported, which from 1.29 on sends names and hashes of models
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
