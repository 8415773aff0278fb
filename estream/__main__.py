"""The program: `estream`, or `python -m estream`."""

import sys

INTERRUPTED = 130
"""Exit status of what Ctrl-C has stopped."""


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, from the first moment on."""
    try:
        # Even its imports take long enough to be interrupted.
        from estream.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
