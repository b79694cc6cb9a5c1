"""DOS RAG, the ablation of the order on QuALITY, development set (EMNLP 2025, arXiv 2506.03989).

Published accuracy with GPT-4o-mini, score order → source order:
  500: 66.5 → 68.2    8K: 76.6 → 81.2    whole document: 81.0

Said by the paper and its code: as in dos_rag_en_mc.toml.
Not said, or not the same here:
  - Chunks and budget: as in dos_rag_en_mc.toml.
  - The published code searches for the question with its options, and asks for a short explanation and [[1]] to
    [[4]]. Here the search is for the question only, and the reply is a letter, which is how ∞Bench scores.
  - 8K is more than most of these articles have, so it is nearly the whole document in both cases.
  - Whether the five runs are five replies to the same prompts. Assumption: they are (the axis `repeat`).

To do: unpack QuALITY.v1.0.1.htmlstripped.dev of github.com/nyu-mll/quality (data/v1.0.1) into data/, set
OPENAI_API_KEY, give prices and limits.
"""

from pathlib import Path

from oprag.compare import EmbedderSpec, Experiment, ModelSpec, read_data

FOLDER = Path(__file__).parent
QUALITY = "data/v1.0.1/QuALITY.v1.0.1.htmlstripped.dev of https://github.com/nyu-mll/quality, into data/"

experiment = Experiment(
    name="dos-rag-quality",
    metrics=["choice_accuracy", "inverted_pairs"],
    count_tokens="tiktoken:cl100k_base",
    data={
        "quality": read_data(
            FOLDER / "data/QuALITY.v1.0.1.htmlstripped.dev", "quality", name="quality", size=2_086, source=QUALITY
        ),
    },
    models={
        "gpt_4o_mini": ModelSpec(
            "openai:gpt-4o-mini-2024-07-18",
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
            "splitter": "recursive",
            "chunk_size": 100,
            "chunk_overlap": 0,
            "token_budget": [500, 1_000, 1_500, 2_000, 4_000, 8_000],
            "order": ["rank", "source"],  # differences are against the first
            "stitch": False,
            "repeat": [1, 2, 3, 4, 5],
        },
        # The whole document; retrieval only finds which one it is.
        {
            "method": "long_context",
            "splitter": "recursive",
            "chunk_size": 100,
            "chunk_overlap": 0,
            "k": 1,
            "repeat": [1, 2, 3, 4, 5],
        },
    ],
)
