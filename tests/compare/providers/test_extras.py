import pytest

from tests.helpers import run_python


@pytest.mark.parametrize(
    ("module", "make", "message"),
    [
        ("torch", "TransformersLikelihood('model')", "Likelihood with a Hugging Face model|huggingface"),
        ("transformers", "TransformersLikelihood('model')", "Likelihood with a Hugging Face model|huggingface"),
        ("xllamacpp", "GgufLikelihood('model.gguf')", "Likelihood with a GGUF model|local-llm"),
    ],
)
def test_a_missing_extra_is_one_sentence_with_the_command(module, make, message):
    feature, extra = message.split("|")
    code = f"""
import sys
sys.modules[{module!r}] = None
from oprag.compare.providers.gguf_likelihood import GgufLikelihood
from oprag.compare.providers.transformers_likelihood import TransformersLikelihood
try:
    {make}
except ImportError as error:
    print(error)
"""
    assert (
        run_python(code)
        == f"{feature} requires an optional dependency; install it with: pip install 'oprag[{extra}]'\n"
    )


def test_importing_loads_no_model_library():
    code = """
import sys
import oprag.compare.providers.gguf_likelihood, oprag.compare.providers.transformers_likelihood
print({'torch', 'transformers', 'xllamacpp'} & set(sys.modules))
"""
    assert run_python(code) == "set()\n"
