"""Likelihoods of answers: two engines with the same weights against a plain computation, and the packaged model."""

import subprocess
import sys
import threading
from pydoc_data.topics import topics

import pytest

from oprag.compare.providers.gguf_likelihood import GgufLikelihood
from oprag.compare.providers.likelihood import LikelihoodModel, likelihood_prompt
from oprag.compare.providers.local_model import local_model_file
from oprag.compare.providers.transformers_likelihood import TransformersLikelihood
from oprag.errors import LikelihoodError, ModelError, OptionError
from tests.integration.tiny_model import WINDOW, tiny_model, tiny_tokenizer, write_gguf

pytestmark = [pytest.mark.integration, pytest.mark.allow_hosts(["127.0.0.1"])]

TEXT = topics["while"] + topics["for"] + topics["try"]
SHORT = likelihood_prompt(topics["break"][:300], "How do I leave a loop?")
LONG = likelihood_prompt(TEXT[:2_100], "How do I leave a loop?")
ALSO_LONG = likelihood_prompt(TEXT[:2_100], "Where may it stand?")
# The last one has characters of several tokens each.
ANSWERS = ["with break", "it terminates the nearest enclosing loop", "x", "Ünïcode 漢字 \U0001f600"]


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer(list(topics.values()))


@pytest.fixture(scope="module")
def model(tokenizer):
    return tiny_model(len(tokenizer))


@pytest.fixture(scope="module")
def huggingface(model, tokenizer):
    return TransformersLikelihood(model, tokenizer, name="tiny")


@pytest.fixture(scope="module")
def gguf_file(model, tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_gguf(model, tokenizer, path)
    return path


@pytest.fixture(scope="module")
def gguf(gguf_file):
    return GgufLikelihood(gguf_file)


@pytest.fixture(scope="module")
def packaged():
    """SmolLM2-135M-Instruct with 4-bit weights."""
    return GgufLikelihood(local_model_file(), window=2_048)


@pytest.fixture(scope="module")
def plainly(model, tokenizer):
    """The figure from one pass for each token of the answer, over the whole vocabulary, in double precision."""

    def likelihood(prompt, answer):
        import torch

        given = tokenizer(prompt)["input_ids"]
        scored = tokenizer(f" {answer}", add_special_tokens=False)["input_ids"]
        total = 0.0
        for number, token in enumerate(scored):
            with torch.no_grad():
                logits = model(torch.tensor([given + scored[:number]])).logits[0, -1].double()
            total += float(logits[token] - logits.exp().sum().log())
        return total / len(scored)

    return likelihood


@pytest.mark.parametrize("prompt", [SHORT, LONG])
@pytest.mark.parametrize("answer", ANSWERS)
def test_both_are_what_a_plain_computation_says(huggingface, gguf, plainly, prompt, answer):
    expected = plainly(prompt, answer)
    assert -30 < expected < -1
    assert huggingface.answer_likelihood(prompt, answer) == pytest.approx(expected, abs=1e-4)
    # llama.cpp keeps keys and values with 16 bits.
    assert gguf.answer_likelihood(prompt, answer) == pytest.approx(expected, abs=0.03)


def test_both_count_the_same_tokens(huggingface, gguf, tokenizer):
    for text in ("", "a", SHORT, "Ünïcode 漢字 \U0001f600"):
        tokens = len(tokenizer(text, add_special_tokens=False)["input_ids"])
        assert huggingface.count_tokens(text) == gguf.count_tokens(text) == tokens
    assert huggingface.window == gguf.window == WINDOW


def test_both_are_likelihood_models_with_a_name_that_lasts(huggingface, gguf, gguf_file):
    assert isinstance(huggingface, LikelihoodModel)
    assert isinstance(gguf, LikelihoodModel)
    assert huggingface.name == "huggingface:tiny float32"
    assert gguf.name == GgufLikelihood(gguf_file, threads=1).name
    assert gguf.name.startswith("gguf:tiny.gguf@")


def test_one_that_is_let_go_at_once_ends(gguf_file):
    # Beside busy processes, a server that has said where it listens has often not begun to work.
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    code = """
import sys
from oprag.compare.providers.gguf_likelihood import GgufLikelihood
for _ in range(200):
    GgufLikelihood(sys.argv[1], threads=1)
"""
    try:
        # One that does not end cannot be interrupted from inside.
        subprocess.run([sys.executable, "-c", code, gguf_file], timeout=60, check=True)
    finally:
        for process in busy:
            process.kill()
            process.wait()


def test_written_special_tokens_are_text(huggingface, gguf, tokenizer):
    text = "one</s>two"
    assert gguf.count_tokens(text) == huggingface.count_tokens(text)
    assert len(tokenizer(text, add_special_tokens=False)["input_ids"]) < huggingface.count_tokens(text)


def test_what_is_too_unlikely_for_single_precision(model, tokenizer, tmp_path):
    import copy

    extreme = copy.deepcopy(model)
    extreme.lm_head.weight.data *= 200
    write_gguf(extreme, tokenizer, tmp_path / "extreme.gguf")
    plain = TransformersLikelihood(extreme, tokenizer, name="extreme").answer_likelihood(SHORT, "x")
    assert plain < -200
    assert GgufLikelihood(tmp_path / "extreme.gguf").answer_likelihood(SHORT, "x") == -104


def test_a_folder_with_a_model(model, tokenizer, tmp_path):
    from transformers import AutoTokenizer

    folder = tmp_path / "tiny"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    loaded = TransformersLikelihood(str(folder))
    given = TransformersLikelihood(model, AutoTokenizer.from_pretrained(folder), name="tiny")
    assert loaded.answer_likelihood(SHORT, ANSWERS[0]) == given.answer_likelihood(SHORT, ANSWERS[0])
    assert loaded.name.startswith("huggingface:tiny@")
    assert loaded.name.endswith(" float32")
    halved = TransformersLikelihood(folder, dtype="bfloat16")
    assert halved.name == loaded.name.replace("float32", "bfloat16")
    assert halved.answer_likelihood(SHORT, ANSWERS[0]) == pytest.approx(
        loaded.answer_likelihood(SHORT, ANSWERS[0]), abs=0.3
    )
    (folder / "generation_config.json").write_text('{"changed": true}')
    assert TransformersLikelihood(folder).name != loaded.name


def test_only_the_logits_of_the_answer_are_computed(model, tokenizer, huggingface):
    shapes = []
    hook = model.lm_head.register_forward_hook(lambda module, given, logits: shapes.append(tuple(logits.shape)))
    huggingface.answer_likelihood(LONG, ANSWERS[1])
    hook.remove()
    answer = tokenizer(f" {ANSWERS[1]}", add_special_tokens=False)["input_ids"]
    assert shapes == [(1, len(answer), len(tokenizer))]


def test_a_figure_does_not_depend_on_the_calls_before(packaged):
    # Shared: the whole prompt, a block of it, a prompt that another one goes on from, and nothing.
    longer = f"{LONG} {TEXT[2_100:2_400]}"
    calls = [(LONG, "no"), (LONG, "yes it is"), (ALSO_LONG, "no"), (longer, "no"), (SHORT, "no")]
    alone = {}
    for prompt, answer in calls:
        packaged.answer_likelihood("Something else:", "entirely")
        alone[prompt, answer] = packaged.answer_likelihood(prompt, answer)
    for number in (0, 1, 2, 3, 0, 3, 1, 4, 2):
        assert packaged.answer_likelihood(*calls[number]) == alone[calls[number]]


def test_a_common_beginning_is_not_read_again(packaged):
    read = []
    complete = packaged._complete

    def counting(tokens, **settings):
        reply = complete(tokens, **settings)
        read.append(reply["timings"]["prompt_n"])
        return reply

    packaged._complete = counting
    try:
        counts = []
        for prompt, answer in [(SHORT, "no"), (LONG, "no"), (LONG, "yes"), (ALSO_LONG, "no")]:
            packaged.answer_likelihood(prompt, answer)
            assert packaged.count_tokens(f" {answer}") == 1
            counts.append(sum(read))
            read.clear()
    finally:
        del packaged._complete
    tokens = packaged.count_tokens(LONG)
    assert counts[1:3] == [tokens, 1]
    # One block of 512 is shared, and one token parts the two.
    assert counts[3] == packaged.count_tokens(ALSO_LONG) - 512 + 1


def test_what_the_model_writes_is_as_likely_as_it_says_itself(packaged):
    prompt = "1, 2, 3, 4, 5, 6, 7, 8, 9,"
    tokens = packaged._tokenized(prompt, first=True)
    reply = packaged._complete(tokens, n_predict=6, n_probs=5, temperature=0)
    written = reply["completion_probabilities"]
    assert packaged._tokenized(reply["content"]) == [token["id"] for token in written]
    said = sum(token["logprob"] for token in written) / len(written)
    assert packaged.answer_likelihood(prompt, reply["content"]) == pytest.approx(said, abs=0.05)


def test_the_context_makes_the_answer_likelier(packaged):
    prompt = likelihood_prompt("The lighthouse of Ardmore was built by Hester Quill.", "Who built the lighthouse?")
    alone = likelihood_prompt("", "Who built the lighthouse?")
    gain = packaged.answer_likelihood(prompt, "Hester Quill") - packaged.answer_likelihood(alone, "Hester Quill")
    assert gain > 1


def test_threads_wait_for_each_other(gguf):
    expected = {answer: gguf.answer_likelihood(SHORT, answer) for answer in ANSWERS}
    found = {}
    threads = [
        threading.Thread(target=lambda answer=answer: found.update({answer: gguf.answer_likelihood(SHORT, answer)}))
        for answer in ANSWERS
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


@pytest.mark.parametrize("engine", ["huggingface", "gguf"])
def test_what_has_no_likelihood(request, engine):
    model = request.getfixturevalue(engine)
    with pytest.raises(LikelihoodError, match="the answer is empty"):
        model.answer_likelihood(SHORT, " ")
    with pytest.raises(LikelihoodError, match="together, which exceeds the window of 2,048"):
        model.answer_likelihood("x " * WINDOW, "x")
    # The longest that fits, with the token that begins every text.
    fitting = "the" + " the" * (WINDOW - 3)
    assert model.count_tokens(fitting) == WINDOW - 2
    assert model.answer_likelihood(fitting, "the") < 0
    with pytest.raises(LikelihoodError, match="have 2,049 tokens together"):
        model.answer_likelihood(fitting, "the the")


def test_a_window_of_ones_own(gguf_file, model, tokenizer):
    for narrow in (
        GgufLikelihood(gguf_file, window=300),
        TransformersLikelihood(model, tokenizer, name="tiny", window=300),
    ):
        assert narrow.window == 300
        with pytest.raises(LikelihoodError, match="the window of 300"):
            narrow.answer_likelihood("x " * 400, "x")


def test_a_model_that_cannot_be_loaded(tmp_path):
    with pytest.raises(ModelError, match="model file not found:"):
        GgufLikelihood(tmp_path / "none.gguf")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF and nothing else")
    bad = GgufLikelihood(tmp_path / "bad.gguf")  # loaded when it is first asked
    with pytest.raises(ModelError, match=r"bad\.gguf cannot be loaded as a GGUF model"):
        bad.answer_likelihood("x", "x")
    with pytest.raises(ModelError, match="cannot be loaded as a causal language model"):
        TransformersLikelihood(tmp_path)


def test_options_that_cannot_be(gguf_file, model, tokenizer):
    with pytest.raises(OptionError, match="threads must be an integer"):
        GgufLikelihood(gguf_file, threads=0)
    with pytest.raises(OptionError, match="window must be an integer"):
        TransformersLikelihood(model, tokenizer, name="tiny", window=1.5)  # type: ignore[arg-type]
    for missing in ({"name": "tiny"}, {"tokenizer": tokenizer}, {"tokenizer": tokenizer, "name": ""}):
        with pytest.raises(OptionError, match="a loaded model requires its tokenizer and a unique name"):
            TransformersLikelihood(model, **missing)
    with pytest.raises(OptionError, match="uses its own tokenizer"):
        TransformersLikelihood("a/model", tokenizer)
