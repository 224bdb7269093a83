"""What is inside a model: layers, embeddings, gradients, several labels at once."""
