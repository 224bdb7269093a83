"""Access to the inside of a model: layers, embeddings, gradients, several labels at once."""
