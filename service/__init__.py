"""Lacuna: online recommendation with noisy or missing features."""

__version__ = "0.1.0.dev0"
