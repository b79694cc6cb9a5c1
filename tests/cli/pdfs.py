"""PDF files, written byte by byte."""

from __future__ import annotations

import io

from pypdf import PdfReader, PdfWriter


def pdf(*pages: str) -> bytes:
    """A file with these pages; each line of a page is a line of text. A page without text is an empty one."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    for number, page in enumerate(pages):
        resources = "/Resources << /Font << /F1 3 0 R >> >>"
        media = "/MediaBox [0 0 612 792]"
        objects += [
            f"<< /Type /Page /Parent 2 0 R {media} {resources} /Contents {5 + 2 * number} 0 R >>".encode(),
            _stream(page),
        ]
    out = io.BytesIO()
    out.write(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.writelines(b"%010d 00000 n \n" % place for place in places)
    out.write(b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table))
    return out.getvalue()


def _stream(page: str) -> bytes:
    lines = [
        "(" + line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)") + ") Tj" for line in page.split("\n")
    ]
    content = ("BT /F1 12 Tf 14 TL 72 720 Td " + " T* ".join(lines) + " ET" if page else "").encode("cp1252")
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)


def encrypted(data: bytes, *, user: str, algorithm: str = "RC4-128") -> bytes:
    """The file with a password; with an empty one it opens, but may not be changed."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user, "owner", algorithm=algorithm)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()
