"""Located strings, for the parts of `spec`: they live below `settings`, which reads YAML with them too."""

from estream.text import Mark, Text

__all__ = ["Mark", "Text"]
