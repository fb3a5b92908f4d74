"""Handwritten digits as the tutorials of TensorFlow 1 load them."""

from . import input_data

__all__ = ["input_data"]
