"""Python callbacks of the example CEQ files."""
