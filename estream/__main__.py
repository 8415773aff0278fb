"""`python -m estream`."""

from estream.cli import main

main()
