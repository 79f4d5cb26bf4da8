"""Comparisons of the model with records of the real thing."""
