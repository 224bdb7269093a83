"""Fine-tuning of models: examples and their order, losses, checkpoints."""
