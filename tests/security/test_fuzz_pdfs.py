"""Damaged and crafted PDF files end in text or in one sentence, never in a traceback, in a hang or without memory."""

import logging
import multiprocessing
import random
import re
import signal
import sys
from collections import Counter

import pytest

from oprag._internal.files import pdf_child
from oprag._internal.files.reading import DEFAULTS
from tests.pdfs import encrypted, one_page, pdf
from tests.security.fuzzing import cases

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="limits of a process of Unix")

LIMITS = {name: number for name, number in DEFAULTS.items() if name.startswith("pdf_")}
_WHOLE = (
    pdf("The harbour of Aldmere has nine cranes.", "", "Each lifts (forty) tons.\nA comet crossed the sky."),
    one_page(b"q BT /F1 12 Tf 14 TL 1 0 0 1 72 720 Tm [(The) -300 (harbour)] TJ T* <41424344> Tj ET Q"),
    encrypted(pdf("Bread rises for three hours."), user=""),
)
_TOKENS = b"""<< >> [ ] ( ) < % stream endstream endobj xref startxref null 0 -1 4294967296 1e999 1_0_R 2_0_R 4_0_R
    /Kids /Parent_4_0_R /Prev_9 /Filter_/LZWDecode /Filter_[/FlateDecode_/FlateDecode] /Length_99999999 /Contents_2_0_R
    /Type_/ObjStm_/N_9999_/First_0 /Encrypt_1_0_R /W_[1_9999_1] /Subtype_/Type0_/ToUnicode_5_0_R""".split()


def mutated(rng):
    data = bytearray(rng.choice(_WHOLE))
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        start = rng.randrange(len(data))
        end = min(len(data), start + rng.choice((1, 2, 8, 64)))
        match rng.randrange(5):
            case 0:
                data[start] = rng.randrange(256)
            case 1:
                del data[start:end]
            case 2:
                data[start:start] = b" %s\n" % rng.choice(_TOKENS).replace(b"_", b" ")
            case 3:
                data[start:start] = data[start:end] * rng.choice((2, 50))
            case 4:
                # Another object, or another size, where a number was.
                numbers = list(re.finditer(rb"[0-9]+", data))
                place = rng.choice(numbers).span() if numbers else (start, end)
                data[slice(*place)] = rng.choice((b"%d" % rng.randrange(12), b"-1", b"9" * 12))
        data = data or bytearray(b"%PDF-1.4")
    return bytes(data)


def read_limited(seed):
    """Exit with 0 when the file has text, with 3 when there is a problem with it; a traceback is 1."""
    logging.disable()
    pdf_child.limit_process(LIMITS)
    reply = pdf_child.read(mutated(random.Random(seed)), LIMITS)
    if "pages" in reply:
        sys.exit(0)
    assert reply["problem"] in {"damaged", "encrypted", "encrypted_with_aes", "library", *LIMITS}
    assert "\n" not in reply.get("detail", "")
    sys.exit(3)


def test_mutated_files():
    # Like `pdf_pages`, but each process is a fork of one that has imported pypdf, which is much faster.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", __name__])
    ends: Counter[int | None] = Counter()
    for seed in range(cases()):
        process = context.Process(target=read_limited, args=(seed,))
        process.start()
        process.join(20 * LIMITS["pdf_seconds"])
        assert process.exitcode in {0, 3, -signal.SIGXCPU}, seed
        ends[process.exitcode] += 1
        process.close()
    assert ends[0]
    assert ends[3]
