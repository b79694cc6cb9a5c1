"""OP-RAG, Figure 3 (arXiv 2409.01666): answer quality over the length of the context, for two sizes of the reader.

Published:
  - The curve is an inverted U.
  - Llama-3.1-8B is best at 16K (k = 128) on both sets.
  - Llama-3.1-70B is best at 48K (k = 384) on En.QA, and from 24K to 32K (k = 192 to 256) on En.MC.
  - OP-RAG with the 70B model: 44.43 F1 at 16K, 45.45 at 24K, 47.25 at 48K on En.QA; accuracy 84.72, 88.65 and 85.59
    on En.MC.

Said by the paper: as in Table 1; the length of the context is 128 × k.
Not said, or said in two ways:
  - Where the points of the curve lie, but for those above. Assumption: doublings from 1K to 64K, with 24K and 48K.
  - What one point may differ by chance: there is one run and no interval. "Best" holds here only where the interval
    of the best point excludes the others'.
  - En.MC has 224 questions in the paper and 229 in the published file; all of them are asked.
  - Whose tokens the 128 are, BGE's instruction, prompts and the length of replies: as in op_rag_table_1.toml.

To do: the data and the server of op_rag_table_1.toml.
"""

from pathlib import Path

from oprag.compare import EmbedderSpec, Experiment, ModelSpec, read_data

FOLDER = Path(__file__).parent
INFINITE_BENCH = "hf download xinrongzhang2022/InfiniteBench --repo-type dataset --local-dir data"

experiment = Experiment(
    name="op-rag-figure-3",
    metrics=["token_f1", "choice_accuracy"],
    # In the tokens of which a chunk has 128, so that contexts have the lengths of the figure.
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
        "llama_8b": ModelSpec(
            "openai:meta-llama/Llama-3.1-8B-Instruct",  # the name under which your server has it
            base_url="http://localhost:8001/v1",
            temperature=0,
            max_tokens=64,
        ),
        "llama_70b": ModelSpec(
            "openai:meta-llama/Llama-3.1-70B-Instruct",
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
            "model": ["llama_8b", "llama_70b"],
            "splitter": "tokens",
            "chunk_size": 128,
            "chunk_overlap": 0,
            "k": [8, 16, 32, 64, 128, 192, 256, 384, 512],
            "order": "source",
            "separator": "",
        },
    ],
)
