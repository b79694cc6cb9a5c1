"""Reads a PDF file in a separate process; `oprag._internal.files.pdf` runs this file as a program.

Imports nothing from the package, so that the process starts fast.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["limit_process", "main", "read"]


def main() -> None:
    """Read a PDF from standard input and write the result of `read` to standard output as JSON."""
    limits, path = map(json.loads, sys.argv[1:])
    sys.path[:] = path
    limit_process(limits)
    out, sys.stdout = sys.stdout.buffer, sys.stderr  # keep standard output clean for the reply
    try:
        reply = json.dumps(read(sys.stdin.buffer.read(), limits), ensure_ascii=False).encode("utf-8", "surrogatepass")
    except MemoryError:
        reply = b'{"problem": "pdf_megabytes"}'
    out.write(reply)


class _RefusedError(Exception):
    """The file was rejected; the arguments are the problem and its detail."""


def read(data: bytes, limits: Mapping[str, int]) -> dict[str, Any]:
    """Return the `pages` of a file, or the `problem` with it and the `detail` of the problem."""
    try:
        from pypdf import PdfReader, apply_configuration
        from pypdf.errors import DependencyError
    except ImportError:  # or a version that is too old, which hangs on some files of 93 bytes
        return {"problem": "missing"}
    # Raise pypdf's limits, beyond which it silently skips text: tagged reports have arrays of over 100,000 elements,
    # and drawings over 5,000 forms. The limits of the process apply instead.
    with apply_configuration(array_maximum_element_count=1_000_000, xform_maximum_invocations_per_extraction=1_000_000):
        try:
            return {"pages": list(_texts(PdfReader(io.BytesIO(data)), limits))}
        except _RefusedError as error:
            return dict(zip(("problem", "detail"), error.args, strict=True))
        except (MemoryError, DependencyError) as error:
            return {"problem": "pdf_megabytes" if isinstance(error, MemoryError) else "encrypted"}
        except Exception as error:  # noqa: BLE001 - on corrupt files pypdf can raise anything
            return {"problem": "damaged", "detail": (str(error).partition("\n")[0] or type(error).__name__)[:200]}


def _texts(reader: Any, limits: Mapping[str, int]) -> Iterator[str]:
    # Files that only restrict printing need no password.
    if reader.is_encrypted and not reader.decrypt(""):
        raise _RefusedError("encrypted", "")
    if len(reader.pages) > limits["pdf_pages"]:
        raise _RefusedError("pdf_pages", f" (it has {len(reader.pages):,})")
    left = limits["pdf_characters"]
    for page in reader.pages:
        text = page.extract_text()
        left -= len(text)
        if left < 0:
            raise _RefusedError("pdf_characters", "")
        yield text


def limit_process(limits: Mapping[str, int]) -> None:
    """Make the OS end this process when it exceeds its limits, even if its parent was killed."""
    try:
        import resource
    except ImportError:  # Windows
        return
    seconds, size = limits["pdf_seconds"], limits["pdf_megabytes"] * 1_000_000
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_AS, size), (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(kind)[1]
        soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(kind, (soft, hard))
        except (ValueError, OSError):  # macOS does not limit memory
            continue


if __name__ == "__main__":
    main()
