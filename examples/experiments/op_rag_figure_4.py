"""OP-RAG, Figure 4 (arXiv 2409.01666): the same chunks in the order of their scores and in that of the source.

Published, score order → source order:
  - En.QA, 128 chunks: F1 38.40 → 44.43.
  - En.MC, 192 chunks: accuracy 81.22 → 88.65.
  - At 8 chunks the order hardly matters.

Said by the paper: as in Table 1.
Not said, or said in two ways:
  - Where the points lie, but for 8, 128 and 192 chunks. Assumption: doublings from 8 to 256.
  - The reader. Assumption: Llama-3.1-70B, whose figures of Table 1 these are.
  - The introduction of the paper says 44.53 where the table has 44.43.
  - No interval. `oprag compare` prints one beside each paired difference.
  - En.MC has 224 questions in the paper and 229 in the published file; all of them are asked.
  - Whose tokens the 128 are, BGE's instruction, prompts and the length of replies: as in op_rag_table_1.toml.

To do: the data and the server of op_rag_table_1.toml.
"""

from pathlib import Path

from oprag.compare import EmbedderSpec, Experiment, ModelSpec, read_data

FOLDER = Path(__file__).parent
INFINITE_BENCH = "hf download xinrongzhang2022/InfiniteBench --repo-type dataset --local-dir data"

experiment = Experiment(
    name="op-rag-figure-4",
    metrics=["token_f1", "choice_accuracy", "inverted_pairs"],
    count_tokens="huggingface:BAAI/bge-large-en-v1.5",
    data={
        "en_qa": read_data(
            FOLDER / "data/longbook_qa_eng.jsonl", "infinitebench", name="en_qa", size=351, source=INFINITE_BENCH
        ),
        "en_mc": read_data(
            FOLDER / "data/longbook_choice_eng.jsonl", "infinitebench", name="en_mc", size=229, source=INFINITE_BENCH
        ),
    },
    models={
        "llama_70b": ModelSpec(
            "openai:meta-llama/Llama-3.1-70B-Instruct",  # the name under which your server has it
            base_url="http://localhost:8000/v1",
            temperature=0,
            max_tokens=64,
        ),
    },
    embedders={
        "bge": EmbedderSpec(
            "huggingface:BAAI/bge-large-en-v1.5",
            question_prefix="Represent this sentence for searching relevant passages: ",
        ),
    },
    grid=[
        {
            "method": "stuff",
            "data": ["en_qa", "en_mc"],
            "model": "llama_70b",
            "splitter": "tokens",
            "chunk_size": 128,
            "chunk_overlap": 0,
            "k": [8, 16, 32, 64, 128, 192, 256],
            "order": ["rank", "source"],  # differences are against the first
            "separator": "",
        },
    ],
)
