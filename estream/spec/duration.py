"""Durations, for the parts of `spec`: they live below `settings`, which has durations too."""

from estream.duration import MICROSECONDS, duration, format_duration, parse_duration

__all__ = ["MICROSECONDS", "duration", "format_duration", "parse_duration"]
