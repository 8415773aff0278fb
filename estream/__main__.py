"""The program: `estream`, or `python -m estream`."""

import os
import signal
import sys

INTERRUPTED = 130
"""Exit status of what Ctrl-C has stopped."""


def main() -> None:
    """Run the command line; Ctrl-C ends it quietly, from the first moment on."""
    # There is nothing to clean up yet, and an import that is interrupted may turn the exception into another.
    usual = signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        from estream.cli import main as run

        signal.signal(signal.SIGINT, usual)
        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
