"""Models that `finetune` trained: new heads, and the folders of the trained models."""
