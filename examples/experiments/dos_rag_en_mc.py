"""DOS RAG, the ablation of the order on ∞Bench En.MC (Laitenberger, Manning and Liu, EMNLP 2025, arXiv 2506.03989).

Published accuracy, score order → source order:
  GPT-4o-mini    1.5K: 69.9 → 68.9    10K: 76.0 → 84.1    40K: 77.2 → 81.6
  GPT-4o         1.5K: 76.2 → 75.6    30K: 87.8 → 93.1

Said by the paper: the same chunks of at most 100 tokens in both orders, Snowflake Arctic-embed-m 1.5, budgets in
tokens, means of five runs. Said by its code (github.com/alex-laitenberger/dos-rag-eval): the versions of the models,
temperature 0, seed 42, the tokens of cl100k_base, chunks joined by a blank line.
Not said, or not the same here:
  - Chunks: the code packs whole sentences into at most 100 tokens. oprag has no sentence splitter; the nearest is
    "recursive", which splits at paragraphs, lines and words, also into at most 100 tokens. Line breaks are kept.
  - Budget: the code stops at the first chunk that does not fit, oprag skips it and continues. The
    difference is less than one chunk.
  - The published code searches for the question with its options, and asks for a short explanation and [[1]] to
    [[4]]. Here the search is for the question only, and the reply is a letter, which is how ∞Bench scores.
  - Whether the five runs are five replies to the same prompts. Assumption: they are (the axis `repeat`).

To do: put longbook_choice_eng.jsonl of huggingface.co/datasets/xinrongzhang2022/InfiniteBench into data/ (229
questions), set OPENAI_API_KEY, give prices and limits.
"""

from pathlib import Path

from oprag.compare import EmbedderSpec, Experiment, ModelSpec, read_data

FOLDER = Path(__file__).parent
INFINITE_BENCH = "hf download xinrongzhang2022/InfiniteBench --repo-type dataset --local-dir data"

experiment = Experiment(
    name="dos-rag-en-mc",
    metrics=["choice_accuracy", "inverted_pairs"],
    count_tokens="tiktoken:cl100k_base",
    data={
        "en_mc": read_data(
            FOLDER / "data/longbook_choice_eng.jsonl", "infinitebench", name="en_mc", size=229, source=INFINITE_BENCH
        ),
    },
    models={
        "gpt_4o_mini": ModelSpec(
            "openai:gpt-4o-mini-2024-07-18",
            temperature=0,
            seed=42,
            max_tokens=16,
        ),
        "gpt_4o": ModelSpec(
            "openai:gpt-4o-2024-11-20",
            temperature=0,
            seed=42,
            max_tokens=16,
        ),
    },
    embedders={
        "arctic": EmbedderSpec(
            "huggingface:Snowflake/snowflake-arctic-embed-m-v1.5",
            question_prefix="Represent this sentence for searching relevant passages: ",  # the model's own for queries
            tokenizer="tiktoken:cl100k_base",
        ),
    },
    grid=[
        {
            "method": "stuff",
            "model": ["gpt_4o_mini", "gpt_4o"],
            "splitter": "recursive",
            "chunk_size": 100,
            "chunk_overlap": 0,
            "token_budget": [1_500, 5_000, 10_000, 20_000, 30_000, 40_000],
            "order": ["rank", "source"],  # differences are against the first
            "stitch": False,
            "repeat": [1, 2, 3, 4, 5],
        },
    ],
)
