"""`python -m gemmlab`: the command line."""

from __future__ import annotations

from gemmlab.cli.app import main

if __name__ == "__main__":
    main()
