"""Reads a PDF file in a separate process; `oprag.files.pdf` runs this file as a program.

Imports nothing from the package, so that the process starts fast.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["MIN_VERSION", "limit_process", "main", "read"]

MIN_VERSION = 7  # earlier versions of pypdf hang on some files of 93 bytes


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
    """Return the `pages` of a file, or the `problem` with it, the `detail` and the `place` of the problem."""
    try:
        import pypdf
    except ImportError:
        return {"problem": "missing"}
    if int(pypdf.__version__.partition(".")[0]) < MIN_VERSION:
        return {"problem": "missing", "detail": f" (pypdf {pypdf.__version__} is too old)"}
    pages: list[str] = []
    # Raise pypdf's limits, beyond which it silently skips text: tagged reports have arrays of over 100,000 elements,
    # and drawings over 5,000 forms. The limits of the process apply instead.
    with pypdf.apply_configuration(
        array_maximum_element_count=1_000_000, xform_maximum_invocations_per_extraction=1_000_000
    ):
        try:
            pages.extend(_texts(pypdf.PdfReader(io.BytesIO(data)), limits))
        except Exception as error:  # noqa: BLE001 - on corrupt files pypdf can raise anything
            place = f", page {len(pages) + 1}" if pages else ""
            return {**_problem(error, pypdf.errors), "place": place}
    return {"pages": pages}


def _texts(reader: Any, limits: Mapping[str, int]) -> Iterator[str]:
    if reader.is_encrypted and not _opened(reader):
        raise _RefusedError("encrypted", "")
    if len(reader.pages) > limits["pdf_pages"]:
        raise _RefusedError("pdf_pages", f"{len(reader.pages):,}")
    left = limits["pdf_characters"]
    for page in reader.pages:
        text = page.extract_text()
        left -= len(text)
        if left < 0:
            raise _RefusedError("pdf_characters", "")
        yield text


def _problem(error: Exception, errors: Any) -> dict[str, str]:
    if isinstance(error, _RefusedError):
        return dict(zip(("problem", "detail"), error.args, strict=True))
    known = (
        (errors.DependencyError, "encrypted_with_aes"),
        (errors.LimitReachedError, "library"),
        (MemoryError, "pdf_megabytes"),
    )
    problem = next((problem for kind, problem in known if isinstance(error, kind)), "damaged")
    return {"problem": problem, "detail": (str(error).strip().partition("\n")[0] or type(error).__name__)[:200]}


def _opened(reader: Any) -> bool:
    """Try to open an encrypted file without a password: files that only restrict printing need none."""
    try:
        return bool(reader.decrypt(""))
    except Exception as error:
        if type(error).__name__ == "DependencyError":
            raise
        return False


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
