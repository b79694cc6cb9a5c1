"""The command line; needs the extra `cli`."""

import io
import sys

from oprag.errors import MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the command line; without the extra, print how to install it and exit with 2."""
    try:
        from oprag.cli.app import app
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(f"{MissingExtraError('The command line', 'cli')}\n")
        sys.exit(2)
    # A pipe's encoding may lack some characters, e.g. on Windows: print an escape instead of a traceback.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    app()
