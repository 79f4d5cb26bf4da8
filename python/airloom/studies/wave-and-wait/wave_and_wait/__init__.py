"""Computations and figures of the study `wave-and-wait`."""
