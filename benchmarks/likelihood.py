"""The likelihood of given answers after their prompts, by a causal language model; needs torch and transformers only.

    python -m benchmarks.likelihood MODEL TEXTS SCORES

It does not need oprag, so that a machine with an accelerator can run it. TEXTS is written by
`benchmarks.order_likelihood`. An interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import torch

# Tokens of a batch: the activations of a small model then fit into a few gigabytes.
BATCH = {"cpu": 1, "cuda": 65_536}


class Scored(NamedTuple):
    """A text as tokens, of which those from `border` on are the answer."""

    row: int
    tokens: list[int]
    border: int


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "model", type=Path, help="folder of a causal language model, or a GGUF file beside tokenizer.json"
    )
    parser.add_argument("texts", type=Path)
    parser.add_argument("scores", type=Path)
    parser.add_argument("--device", choices=BATCH, default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", type=int, default=256, help="rows that are scored and written together")
    options = parser.parse_args()
    model, tokenizer = _load(options.model, options.device)
    with lzma.open(options.texts, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    done = len(options.scores.read_text().splitlines()) if options.scores.exists() else 0
    with options.scores.open("a") as out:
        for first in range(done, len(rows), options.rows):
            for likelihood in _likelihoods(model, tokenizer, rows[first : first + options.rows], BATCH[options.device]):
                print(json.dumps(likelihood), file=out)
            out.flush()
            print(f"{first + options.rows:,} of {len(rows):,}", file=sys.stderr, flush=True)


def _load(path: Path, device: str) -> tuple[Any, Any]:
    """The model, and its tokenizer (`tokenizers.Tokenizer`), which is read as it was saved."""
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM

    where = {"gguf_file": path.name} if path.suffix == ".gguf" else {}
    folder = path.parent if where else path
    # Reading a long text on a CPU in blocks is several times as fast.
    attention = "sdpa" if device == "cuda" else _windowed()
    model: Any = AutoModelForCausalLM.from_pretrained(folder, dtype="bfloat16", attn_implementation=attention, **where)
    if getattr(model.config.get_text_config(), "final_logit_softcapping", None):
        sys.exit("this model changes its logits after the last layer, which is not computed here")
    return model.to(device).eval(), Tokenizer.from_file(str(folder / "tokenizer.json"))


def _windowed() -> str:
    from benchmarks.windowed_attention import register

    return register()


def _likelihoods(model: Any, tokenizer: Any, rows: Sequence[dict[str, Any]], limit: int) -> list[float]:
    """For each row the mean log-probability per token of its most likely answer, in nats."""
    asked = [(number, row["prompt"], answer) for number, row in enumerate(rows) for answer in row["answers"]]
    wholes = tokenizer.encode_batch([f"{prompt} {answer}" for _, prompt, answer in asked])
    prompts = tokenizer.encode_batch([prompt for _, prompt, _ in asked])
    texts = [
        Scored(number, whole.ids, _border(prompt.ids, whole.ids))
        for (number, _, _), prompt, whole in zip(asked, prompts, wholes, strict=True)
    ]
    best = [float("-inf")] * len(rows)
    for batch in _batches(sorted(texts, key=lambda one: len(one.tokens)), limit):
        for one, likelihood in zip(batch, _means(model, batch), strict=True):
            best[one.row] = max(best[one.row], likelihood)
    return best


def _border(prompt: Sequence[int], whole: Sequence[int]) -> int:
    """Where the answer starts; a token that spans both belongs to it."""
    return next(place for place, (one, other) in enumerate(zip_longest(prompt, whole)) if one != other)


def _batches(texts: Sequence[Scored], limit: int) -> list[list[Scored]]:
    """Texts of similar length, with at most `limit` tokens in a batch, or one text."""
    batches: list[list[Scored]] = []
    for one in texts:
        if not batches or len(one.tokens) * (len(batches[-1]) + 1) > limit:
            batches.append([])
        batches[-1].append(one)
    return batches


def _means(model: Any, batch: Sequence[Scored]) -> list[float]:
    longest = max(len(one.tokens) for one in batch)
    # Tokens after the end of a text need no mask: no earlier token attends to them.
    ids = torch.tensor([one.tokens + [0] * (longest - len(one.tokens)) for one in batch], device=model.device)
    with torch.inference_mode():
        states = model.get_decoder()(input_ids=ids, use_cache=False).last_hidden_state
        means = []
        for one, state in zip(batch, states, strict=True):
            # The logits at each position are those of the next token.
            logits = model.get_output_embeddings()(state[one.border - 1 : len(one.tokens) - 1])
            chosen = torch.tensor(one.tokens[one.border :], device=model.device).unsqueeze(1)
            means.append(float(logits.float().log_softmax(-1).gather(1, chosen).double().mean()))
    return means


if __name__ == "__main__":
    main()
