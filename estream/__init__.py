"""EStream: continuous queries over streams, event detection and rules in one system."""

__version__ = "0.1.0"
