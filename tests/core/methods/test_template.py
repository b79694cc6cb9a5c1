import pytest

from oprag.errors import PromptError
from oprag.methods import Template, TextTemplate


@pytest.mark.parametrize(
    "text",
    ["{", "}", "{}", "{0}", "{a.b}", "{a[0]}", "{a!r}", "{a:>9}", "{a b}", "{ a }", "{a:{b}}", "{a-b}", "{{a}", "{a"],
)
@pytest.mark.parametrize("place", ["user", "system"])
def test_a_field_is_a_plain_name(text, place):
    with pytest.raises(PromptError, match="brace") as caught:
        TextTemplate(text) if place == "user" else TextTemplate("x", text)
    assert caught.value.value == text


@pytest.mark.parametrize("text", [None, 5, b"{a}", ["{a}"]])
def test_a_text_is_a_string(text):
    with pytest.raises(PromptError, match="must be a string or a prompt template"):
        TextTemplate(text)


def test_a_value_that_is_missing_is_named():
    with pytest.raises(PromptError, match=r"requires a value for \{audience\}.*available: context, question") as caught:
        TextTemplate("{context} {audience}").messages({"question": "Q", "context": "C"})
    assert caught.value.value == "audience"


def test_equal_templates():
    assert TextTemplate("a", "b") == TextTemplate("a", "b")
    assert hash(TextTemplate("a", "b")) == hash(TextTemplate("a", "b"))
    assert TextTemplate("a", "b") != TextTemplate("a")
    assert TextTemplate("a") != "a"
    assert eval(repr(TextTemplate("a{b}", "c")), {"TextTemplate": TextTemplate}) == TextTemplate("a{b}", "c")
    assert isinstance(TextTemplate("a"), Template)
