"""Text files, read as they are."""

import pytest

from oprag._internal.files.reading import file_text
from oprag.errors import InputFileError


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"ab\xe9 c", ("byte 2 is 0xe9", "iconv -f latin1 -t utf-8")),
        ("ab".encode("utf-16"), ("byte 0 is 0x", "iconv -f utf-16 -t utf-8")),
        (b"a\0b", ("null bytes",)),
        (b" \n", ("contains no text",)),
        (b"", ("contains no text",)),
    ],
)
def test_what_is_no_text_is_refused_with_the_name(data, words):
    with pytest.raises(InputFileError) as caught:
        file_text("a.txt", data)
    assert str(caught.value).startswith("a.txt ")
    assert all(word in str(caught.value) for word in words)
