"""Reads the text of PDF files, page by page."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from oprag._internal.files import pdf_child
from oprag._internal.files.reading import MEGABYTE, limit, variable
from oprag.errors import InputFileError, MissingExtraError, OpragError

__all__ = ["is_pdf", "pdf_pages"]

_MARK = b"%PDF-"
# Timeout as a multiple of the CPU time limit. Linux and macOS enforce the CPU time itself, so there it is generous.
_ELAPSED = 10 if os.name == "posix" else 1


def is_pdf(name: str, data: bytes) -> bool:
    """Return whether a file is a PDF, by content or by name."""
    return data.startswith(_MARK) or name.lower().endswith(".pdf")


def pdf_pages(name: str, data: bytes, extra: str) -> list[str]:
    """Return the text of each page; scanned pages are empty.

    Reads the file in a separate process: a few kilobytes can keep pypdf busy for hours or exhaust memory, and only a
    process can be stopped.
    """
    if find_spec("pypdf") is None:
        raise MissingExtraError("Reading a PDF file", extra)
    megabytes = len(data) / MEGABYTE
    limits = {
        "pdf_pages": limit("pdf_pages"),
        "pdf_characters": limit("pdf_characters"),
        "pdf_seconds": limit("pdf_seconds", 60 * megabytes),
        "pdf_megabytes": limit("pdf_megabytes", 10 * megabytes),
    }
    reply = _reply(data, limits)
    if "problem" in reply:
        raise _error(name, reply, limits, extra)
    pages: list[str] = reply["pages"]
    if not any(page.strip() for page in pages):
        raise InputFileError(
            f"{name} contains no text: its pages ({len(pages)}) are empty or scanned images; run OCR first, for "
            "example with ocrmypdf",
            name,
        )
    return pages


def _reply(data: bytes, limits: dict[str, int]) -> dict[str, Any]:
    """Run `pdf_child.read` in a separate process."""
    interpreter = _interpreter()
    if interpreter is None:
        return pdf_child.read(data, limits)
    # -I: import nothing from the current folder, but pass on the import path of this process. Skip entries that are not
    # strings, as Python does.
    path = [folder for folder in sys.path if folder and isinstance(folder, str)]
    command = [interpreter, "-I", pdf_child.__file__, json.dumps(limits), json.dumps(path)]
    try:
        child = subprocess.run(  # noqa: S603 - this very interpreter
            command,
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=min(limits["pdf_seconds"] * _ELAPSED, 1_000_000),
            check=False,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        if child.returncode == -getattr(signal, "SIGXCPU", 0):
            return {"problem": "pdf_seconds"}
        reply: dict[str, Any] = json.loads(child.stdout.decode("utf-8", "surrogatepass"))
    except subprocess.TimeoutExpired:
        return {"problem": "pdf_seconds"}
    except (OSError, ValueError) as error:  # it was killed, or something else prints when Python starts
        status = f"status {child.returncode}" if isinstance(error, ValueError) else error.strerror
        return {"problem": "damaged", "detail": f"the reader, {interpreter}, failed: {status}"}
    return reply


def _interpreter() -> str | None:
    """Return the path of the Python interpreter; None in a frozen program, which has none."""
    if getattr(sys, "frozen", False):
        return None
    if Path(sys.executable or "").name.lower().startswith(("python", "pypy")):
        return sys.executable
    # Python is embedded in another program, such as uWSGI, which is then `sys.executable`.
    installed = Path(sys.exec_prefix, *(("python.exe",) if os.name == "nt" else ("bin", "python3")))
    return str(installed) if installed.is_file() else None


def _error(name: str, reply: dict[str, Any], limits: dict[str, int], extra: str) -> OpragError:
    problem, detail = reply["problem"], reply.get("detail", "")
    if problem == "missing":
        return MissingExtraError("Reading a PDF file", extra)
    if problem in limits:
        units = {"pdf_seconds": "seconds of CPU time", "pdf_megabytes": "megabytes of memory"}
        what = units.get(problem, problem.removeprefix("pdf_"))
        return InputFileError(
            f"{name} exceeds the limit of {limits[problem]:,} {what}{detail}; if you trust the file, raise the limit "
            f"with the environment variable {variable(problem)}",
            name,
        )
    what = {
        "encrypted": "is encrypted; make a copy without a password first, for example with qpdf --decrypt, or if it "
        "opens without one, pip install 'pypdf[crypto]'",
        "damaged": f"is not a PDF file, or is corrupt ({detail}); repair it first, for example with mutool clean",
    }[problem]
    return InputFileError(f"{name} {what}", name)
