"""The command line; the extra `cli`."""

import io
import sys

from oprag.errors import MissingExtraError

__all__ = ["main"]


def main() -> None:
    """Run the command line; without the extra, say how to install it."""
    try:
        from oprag.cli.app import app
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(f"{MissingExtraError('The command line', 'cli')}\n")
        sys.exit(2)
    # The encoding of a pipe may lack characters, as on Windows: an escape is better than a traceback.
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    app()
