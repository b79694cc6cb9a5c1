"""What the papers say of their grids and results, by experiment file."""

from itertools import product
from typing import Any

__all__ = ["CELLS", "COMMON", "FIGURES"]

OP_RAG_SETS = ("en_qa", "en_mc")
BOTH = ("rank", "source")
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)
NINE = ("narrativeqa", "qasper", "multifieldqa", "hotpotqa", "2wikimqa", "musique", "qmsum", "en_qa", "en_mc")
SIX = ("stuff", "map_reduce", "map_rerank", "refine", "step_down", "reciprocal")
FIVE = (1, 2, 3, 4, 5)

# By file: what its cells differ in, and the cells.
CELLS: dict[str, tuple[tuple[str, ...], set[tuple[Any, ...]]]] = {
    "op_rag_table_1": (
        ("method", "data", "model", "splitter", "chunk_size", "k", "order", "source_token_budget"),
        {
            *product(["stuff"], OP_RAG_SETS, ["llama_70b"], ["tokens"], [128], (128, 192, 384), ["source"], [None]),
            *product(
                ["long_context"], OP_RAG_SETS, ("llama_70b", "gpt_4o"), ["tokens"], [128], [1], ["source"], [117_000]
            ),
            *product(["long_context"], OP_RAG_SETS, ["gemini_15_pro"], ["tokens"], [128], [1], ["source"], [None]),
            *product(["self_route"], OP_RAG_SETS, ["gpt_4o"], ["words"], [300], [5], ["rank"], [117_000]),
            *product(["self_route"], OP_RAG_SETS, ["gemini_15_pro"], ["words"], [300], [5], ["rank"], [None]),
        },
    ),
    "op_rag_figure_3": (
        ("data", "model", "k"),
        set(product(OP_RAG_SETS, ("llama_8b", "llama_70b"), (8, 16, 32, 64, 128, 192, 256, 384, 512))),
    ),
    "op_rag_figure_4": (
        ("data", "k", "order"),
        set(product(OP_RAG_SETS, (8, 16, 32, 64, 128, 192, 256), BOTH)),
    ),
    "dos_rag_en_mc": (
        ("model", "token_budget", "order", "repeat"),
        set(product(("gpt_4o_mini", "gpt_4o"), (1_500, 5_000, 10_000, 20_000, 30_000, 40_000), BOTH, FIVE)),
    ),
    "dos_rag_quality": (
        ("method", "token_budget", "k", "order", "repeat"),
        {
            *product(["stuff"], (500, 1_000, 1_500, 2_000, 4_000, 8_000), [None], BOTH, FIVE),
            *product(["long_context"], [None], [1], ["source"], FIVE),
        },
    ),
    "dos_rag_narrativeqa": (
        ("token_budget", "order"),
        set(product((1_500, 5_000, 10_000, 20_000, 30_000, 40_000), BOTH)),
    ),
    "self_route": (
        ("method", "data", "model", "splitter", "embedder", "source_token_budget"),
        {
            (*cell[:2], model, *cell[2:], budget if cell[0] != "stuff" else None)
            for model, budget in (("gemini_15_pro", None), ("gpt_4o", 120_000), ("gpt_35_turbo", 15_000))
            for cell in (
                *product(("stuff", "self_route"), NINE, ("words", "tokens"), ("contriever", "dragon")),
                *product(["long_context"], NINE, ["words"], ["contriever"]),
            )
        },
    ),
    "sakar_emekci": (
        ("method", "store", "embedder", "model", "data", "similarity_threshold", "redundancy_threshold"),
        {
            (*cell, *thresholds)
            for cell in product(
                SIX,
                ("chroma", "faiss", "pinecone"),
                ("openai", "bge"),
                ("gpt_4o_mini", "llama_8b"),
                ("sec_10q", "llama2", "medqa"),
            )
            for thresholds in (*product(THRESHOLDS, THRESHOLDS), (None, None))
        },
    ),
}
# What all cells of a file have in common.
PAPER_CHUNKS = {"splitter": "tokens", "chunk_size": 128, "chunk_overlap": 0, "search": "dense", "store": "index"}
DOS_CHUNKS = {"splitter": "recursive", "chunk_size": 100, "chunk_overlap": 0, "search": "dense", "store": "index"}
COMMON: dict[str, dict[str, Any]] = {
    "op_rag_table_1": {"chunk_overlap": 0, "embedder": "bge", "repeat": 1},
    "op_rag_figure_3": {**PAPER_CHUNKS, "method": "stuff", "order": "source", "separator": "", "embedder": "bge"},
    "op_rag_figure_4": {**PAPER_CHUNKS, "method": "stuff", "model": "llama_70b", "separator": "", "embedder": "bge"},
    "dos_rag_en_mc": {**DOS_CHUNKS, "method": "stuff", "k": None, "stitch": False, "separator": "\n\n"},
    "dos_rag_quality": {**DOS_CHUNKS, "model": "gpt_4o_mini"},
    "dos_rag_narrativeqa": {**DOS_CHUNKS, "method": "stuff", "model": "gpt_4o_mini", "stitch": False, "repeat": 1},
    "self_route": {"chunk_size": 300, "chunk_overlap": 0, "k": 5, "order": "rank"},
    "sakar_emekci": {"splitter": "recursive", "chunk_size": 1_000, "chunk_overlap": 100, "k": 20, "order": "rank"},
}
FIGURES = {
    "op_rag_table_1": "34.26 32.36 43.08 71.62 78.42 85.57 34.95 37.51 77.29 76.86 44.43 45.45 47.25 84.72 88.65 85.59",
    "op_rag_figure_3": "16K 48K 44.43 45.45 47.25 84.72 88.65 85.59",
    "op_rag_figure_4": "38.40 44.43 81.22 88.65 44.53",
    "dos_rag_en_mc": "69.9 68.9 76.0 84.1 77.2 81.6 76.2 75.6 87.8 93.1",
    "dos_rag_quality": "66.5 68.2 76.6 81.2 81.0",
    "dos_rag_narrativeqa": "15.1 16.3 19.4 22.1",
    "self_route": "82 300 34.95 37.51 77.29 76.86",
    "sakar_emekci": "91 87 86 85 14.29 34.33 7.2 70.5 71.7 71.3 18.63 9.73 8.99 12.5 18.6 8.04 4.7 7.89 7.69 7.59 "
    "17.44 0.8/0.8 0.7/0.8 0.5/0.6 5.08 9.18 15.7 23,625 112",
}
