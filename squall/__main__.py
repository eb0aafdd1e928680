"""``python -m squall``: the command line."""

from __future__ import annotations

from squall.cli import main

if __name__ == "__main__":
    main()
