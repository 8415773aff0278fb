"""Suggestions, for the parts of `spec`: they live below `settings`, which makes them too."""

from estream.suggest import did_you_mean, nearest, suggestion

__all__ = ["did_you_mean", "nearest", "suggestion"]
