"""`python -m dpsparse` is the command line."""

from dpsparse.cli import main

main()
