"""HTML of published articles, as text."""

import pytest

from oprag.compare.data.formats import html_text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Plain.\n\n\n\n Text. ",
        "If a < b and c > d, then AT&T & co. &lt;",
        "<3 and <- and <Mr. Unknown>",
        "x</unknown>",
    ],
)
def test_a_text_without_tags_stays_as_it_is(text):
    assert html_text(text) == text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One.</p><p>Two.</p>", "One.\nTwo."),
        ("One<br>two<BR/>three<br />four", "One\ntwo\nthree\nfour"),
        ("<p>A <i>small</i> <b>bird</b>&nbsp;&amp; caf&eacute; &#8212; so.</p>", "A small bird\xa0& café — so."),
        ("<h1>Title</h1>\n\n\n\n<p> Text</p>", "Title\n\n Text"),
        ("<html><head><title>No</title><style>p {}</style></head><body>Yes<script>no()</script>!</body>", "Yes!"),
        ("<pre>\n  INT.\n\n     ADA\n</pre>", "INT.\n\n     ADA"),
        ("<p>If a < b.</p>", "If a < b."),
        ("<p>Left open", "Left open"),
        ('<p class="a>b">Odd</p>', "Odd"),
        ("<!-- no --><p>Yes</p>", "Yes"),
        ("<table><tr><td>One</td><td>Two</td></tr></table>", "One\nTwo"),
    ],
)
def test_tags_go_and_what_stands_apart_begins_a_line(html, text):
    assert html_text(html) == text
