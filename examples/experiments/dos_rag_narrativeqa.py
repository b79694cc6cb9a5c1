"""DOS RAG, the ablation of the order on NarrativeQA, test set (EMNLP 2025, arXiv 2506.03989).

Published F1 with GPT-4o-mini, score order → source order:
  1.5K: 15.1 → 16.3    30K: 19.4 → 22.1

Said by the paper and its code: as in dos_rag_en_mc.toml; whole stories, not their summaries.
Not said, or not the same here:
  - Chunks and budget: as in dos_rag_en_mc.toml.
  - F1: the code scores with SQuAD 2's function, oprag with ∞Bench's; both count the words that are shared.
  - Runs: one here; whether all figures are means of five we could not tell, and five take five times as much.
  - Prompts: oprag's own.
  - Some stories can no longer be downloaded: name them in `exclude`. Their questions are then missing here.

To do: clone github.com/google-deepmind/narrativeqa to data/narrativeqa and run its download_stories.sh there, set
OPENAI_API_KEY, give prices and limits. This is the dearest of the three: draw a sample first (`sample = 200`).
"""

from pathlib import Path

from oprag.compare import EmbedderSpec, Experiment, ModelSpec, read_data

FOLDER = Path(__file__).parent
NARRATIVE_QA = (
    "git clone https://github.com/google-deepmind/narrativeqa data/narrativeqa; "
    "cd data/narrativeqa; bash download_stories.sh"
)

experiment = Experiment(
    name="dos-rag-narrativeqa",
    metrics=["token_f1", "inverted_pairs"],
    count_tokens="tiktoken:cl100k_base",
    data={
        "narrativeqa": read_data(
            FOLDER / "data/narrativeqa",
            "narrativeqa",
            name="narrativeqa",
            split="test",
            exclude=[],
            size=10_391,
            source=NARRATIVE_QA,
        ),
    },
    models={
        "gpt_4o_mini": ModelSpec(
            "openai:gpt-4o-mini-2024-07-18",
            temperature=0,
            seed=42,
            max_tokens=64,
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
            "token_budget": [1_500, 5_000, 10_000, 20_000, 30_000, 40_000],
            "order": ["rank", "source"],  # differences are against the first
            "stitch": False,
        },
    ],
)
