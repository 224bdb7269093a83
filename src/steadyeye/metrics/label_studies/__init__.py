"""What few labels say of a model: which sets to ask for, what they show, when it is enough."""
