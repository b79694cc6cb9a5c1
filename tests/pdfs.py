"""PDF files, written byte by byte."""

from __future__ import annotations

import base64
import io
import zlib

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
    return _file(objects)


def one_page(content: bytes, *objects: bytes, resources: bytes = b"/Font << /F1 3 0 R >>", root: int = 2) -> bytes:
    """A file of one page with a content stream as it is; `objects` are numbered from 6, `root` is the page tree."""
    return _file(
        [
            f"<< /Type /Catalog /Pages {root} 0 R >>".encode(),
            b"<< /Type /Pages /Kids [4 0 R] /Count 1 >>",
            b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << %s >> /Contents 5 0 R >>" % resources,
            stream(content),
            *objects,
        ]
    )


def stream(data: bytes, entries: bytes = b"") -> bytes:
    """A compressed stream, with these entries in its dictionary."""
    packed = zlib.compress(data, 9)
    return b"<< /Length %d /Filter /FlateDecode %s >>\nstream\n%s\nendstream" % (len(packed), entries, packed)


def _file(objects: list[bytes]) -> bytes:
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


def encrypted_with_aes() -> bytes:
    """A file of one page that opens without a password, which this module's `encrypted` made with AES-128."""
    return zlib.decompress(base64.b85decode(_WITH_AES))


def encrypted(data: bytes, *, user: str, algorithm: str = "RC4-128") -> bytes:
    """The file with a password; with an empty one it opens, but may not be changed."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user, "owner", algorithm=algorithm)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


# As base85, since making it takes a package that reading other files does not.
_WITH_AES = (
    r"""c-oCq&ui2`6b7l6IVfH{kIH%wb$(_hk!4GN?4oFC>1qX~;3PBCrfidv%$C;wz^gq7{uK&>XF(65;Gtka1dCq1h@e*|>27y%J(z@H"""
    r"""-Z$@k-^+XR8cXw?E95Ezjj!K6>;nQZ%;OEvYyxz9cgsLDr=05LYXB{&HB&<B9hO0>1x%(ZM>-Ku`vG(_)g`<SS>+E`0h-JEnS*33"""
    r"""l>IZb5-N;$JyJpoMyF~v-|<}7zk*OGBU&*on=<bgiBGCx=;S`8-Vn%#N&3$VXU_ALF!(EVKA~T60MzZrt~M)>05q#gQ?sM%rnhZe"""
    r"""nkazUS(58CTZ8Csn$2WoIt0c9f-!+xCR=msQ1I%!bcIoy;O*4ji)a1EbJK_W`18Tur89>Y&OUknd+O;mxBKPrbu0dH?#-i9-|u}o"""
    r"""*tvM})yIv~mmi>X;l$5(FQ=cMZ-`%&&VXv5D8>|5Aon$@mVq{*p)W4vG~$tvG@`y%Y0sGgqOMb!R)q#=5jF!MtO_MFhOtCOGSMuK"""
    r"""Ft=K18xpRpVqDuuvCs;mIf<i?8=45Ms8YfPzUFseGsaW|*q?YPj;y3fC^g~CYHYAd1Px=$O<=f@L8v$p9Aj?_YpucrhgIh~bwj&O"""
    r"""4|X$sx8B~aE(e;=lf^BQRZa^K&9u8Kbo8TQ*!!;A?7$;}$|#PFQImEGV*!Q|;Nu61AYcKs@E9Y$mGwzB!UUhd2xSu(4afw>csPM^"""
    r"""K}VP?RN6B|-N$bF(D?Mwa-RG7IU0%^^L`wfmL*ijR!VA_6*NhV<Wx%&X(Oc!W$S-jR_nW5>~1+Ih67SMRk*q^QbeH9XfJlaAL1Y>"""
    r"""vH"""
)
