"""What servers say of a prompt that is too long, and what to do about it."""

import time
from dataclasses import replace
from typing import Any

import pytest

from oprag import Chunk, ContextOptions
from oprag.errors import ModelError
from oprag.methods import Prompt
from oprag.methods.too_long import overflow_in
from tests.core.methods.helpers import Reply, World, parts, words


@pytest.mark.parametrize(
    ("message", "overflow"),
    [
        # llama.cpp, llama-cpp-python and LM Studio
        (
            (
                '{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the '
                'context size or enable context shift",'
                '"type":"exceed_context_size_error","n_prompt_tokens":14429,"n_ctx":8192}}'
            ),
            (8192, 14429, None),
        ),
        ("the request exceeds the available context size (4096)", (4096, None, None)),
        ("Requested tokens (2285) exceed context window of 2048", (2048, 2285, None)),
        (
            (
                "Trying to keep the first 111490 tokens when context the overflows. However, the model is loaded with "
                "context length of only 32768 tokens, which is not enough."
            ),
            (32768, 111490, None),
        ),
        ("Input length 6491 exceeds context length 1500", (1500, 6491, None)),
        # OpenAI and vLLM
        (
            (
                "This model's maximum context length is 8192 tokens. However, your messages resulted in 9021 tokens. "
                "Please reduce the length of the messages."
            ),
            (8192, 9021, None),
        ),
        (
            (
                "This model's maximum context length is 8,192 tokens. However, you requested 9,000 tokens (8,000 in "
                "the messages, 1,000 in the completion)."
            ),
            (8192, 8000, 1000),
        ),
        (
            (
                "This model's maximum context length is 4097 tokens, however you requested 5000 tokens (4744 in your "
                "prompt; 256 for the completion)."
            ),
            (4097, 4744, 256),
        ),
        (
            (
                "'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is "
                "4096 tokens and your request has 3500 input tokens (1000 > 4096 - 3500)."
            ),
            (4096, 3500, 1000),
        ),
        (
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
            (4096, 5000, None),
        ),
        # Anthropic, Gemini and Mistral
        ("prompt is too long: 210000 tokens > 200000 maximum", (200000, 210000, None)),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            (1048576, 1200000, None),
        ),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            (32768, 40000, None),
        ),
        # Other errors, or no size
        ("Context size has been exceeded.", None),
        ("the input length exceeds the context length", None),
        ("Rate limit reached: Limit 30000, Requested 35000 tokens per minute", None),
        ("Error code: 401 - invalid key", None),
        ("maximum context length is 0 tokens", None),
        ("", None),
    ],
)
def test_the_errors_of_servers(message, overflow):
    assert overflow_in(message) == overflow


LONG = ValueError("request (3000 tokens) exceeds the available context size (2500 tokens)")


@pytest.mark.parametrize(
    ("method", "step", "option"),
    [
        ("stuff", "answer", "token_budget"),
        ("refine", "answer", "passage_tokens"),
        ("refine", "refine", "passage_tokens"),
        ("map_reduce", "map", "passage_tokens"),
        ("map_reduce", "collapse", "collapse_tokens"),
        ("map_reduce", "reduce", "collapse_tokens"),
        ("map_rerank", "rerank", "passage_tokens"),
        ("step_down", "variants", "token_budget"),
        ("step_down", "answer", "token_budget"),
        ("long_context", "answer", "source_token_budget"),
        ("self_route", "route", "token_budget"),
        ("self_route", "answer", "source_token_budget"),
    ],
)
def test_the_option_that_limits_a_prompt(method, step, option):
    replies: dict[str, Any] = {"variants": "Who?", "route": "Unanswerable.", "map": "word " * 1_200, step: LONG}
    found = [Chunk("word " * 2_400, rank, metadata={"source": "voyage", "chunk_index": 3 * rank}) for rank in range(2)]
    world = World(found, sources={"voyage": "word " * 2_400}, **replies)
    with pytest.raises(ModelError, match=rf"'{step}'.* failed: ValueError: .*; set {option}=\d+$"):
        world.answer(method=method, passage_tokens=3_000, collapse_tokens=60 if step == "collapse" else None)


def test_a_prompt_that_is_too_long_without_its_context_has_no_such_option():
    with pytest.raises(ModelError, match=r"2500 tokens\)$"):
        World(parts(1), answer=LONG).answer(prompts={"answer": "Long. " * 9_000 + "{context} {question}"})
    with pytest.raises(ModelError, match=r"2500 tokens\)$"):
        World(parts(1), aggregate=LONG).answer(method="step_down")


@pytest.mark.parametrize(
    "message", ["context size (" * 300, "1 " * 2_000, "9," * 2_000, "context size 4096 " + "9 " * 2_000]
)
def test_an_endless_error_takes_no_time(message):
    started = time.process_time()
    overflow_in(message * 20)
    assert time.process_time() - started < 5


def test_the_limit_of_the_error_fits():
    """The model has more tokens than `count_tokens` has words, and refuses more than 600."""

    def reply(prompt: Prompt) -> Reply:
        tokens = int(1.4 * words(prompt.text))
        fits = tokens <= 600
        return "An answer." if fits else ValueError(f"request ({tokens} tokens) exceeds the context size (600 tokens)")

    found = [
        Chunk(f"Part {rank} " + "word " * 28, rank, metadata={"source": "voyage", "start_index": 1_000 * rank})
        for rank in range(40)
    ]
    for method, option in (("stuff", "token_budget"), ("map_reduce", "passage_tokens")):
        for on_error in ("raise", "skip"):
            given: Any = {"method": method, "on_error": on_error, "passage_tokens": 600}
            options = ContextOptions(count_tokens=words)
            with pytest.raises(ModelError, match=rf"; set {option}=\d+$") as caught:
                World(found, answer=reply, map=reply).answer(context_options=options, **given)
            limit = int(str(caught.value).rpartition("=")[2])
            # 525 tokens of the model, without those of the reply, are 375 of ours, of which some are not the context.
            assert 250 < limit < 360
            if option == "token_budget":
                options = replace(options, token_budget=limit)
            else:
                given[option] = limit
            assert World(found, answer=reply, map=reply).answer(context_options=options, **given).text
