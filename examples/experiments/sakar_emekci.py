"""The grid of Şakar and Emekci (2024, doi 10.1017/nlp.2024.53), with and without compression of the context.

It is methods × vector stores × embedders × models × thresholds × data; the thresholds compress the context.

Published, from its prose (its tables and figures were not in the copy that this file was written from):
  - Score (cosine of answer and reference): Reciprocal 91 %, Step-Down 87, Stuff 86, Map-Reduce 85.
  - Median run time: Stuff 14.29 s, Step-Down 34.33 s; with Chroma 18.63 ± 9.73 s.
  - Stuff gives up 7.2 % of the score for 70.5 % fewer tokens (elsewhere 71.7, 71.3).
  - Compression saves tokens: Map-Reduce 8.99 %, Reciprocal 12.5, Refine 18.6, Step-Down 8.04.
  - It costs score: Map-Reduce 4.7 %, Map-Rerank 7.89, Reciprocal 7.69, Refine 7.59, Stuff 17.44.
  - Best thresholds, similarity/redundancy: 10-Q 0.8/0.8, Llama2 0.7/0.8, MedQA 0.5/0.6, at a loss of score of 5.08,
    9.18 and 15.7 %.
  - 23,625 cells in 112 hours. Figures are medians ± standard deviations, by method, store, model and threshold.

Said by the paper: chunks of 1,000 tokens with an overlap of 100, cut recursively; Chroma, FAISS and Pinecone; both
thresholds from 0.5 to 0.9 in steps of 0.1; SEC 10-Q reports of Docugami, the Llama2 paper, MedQA.
Not said, or said in two ways:
  - 23,625 is 7 × 3 × 25 × 3 × 15: seven methods, three stores, 25 pairs of thresholds, three sets, and 15 pairs of an
    embedder and a model. The prose names six methods of the seven; those six are here. (This sum is ours.)
  - What an iteration is: 112 hours are 17 s for each of the 23,625, about as long as one answer takes. So an iteration
    seems to be one question, not a set of them. Assumption: 10 questions of each set, since one gives no interval.
  - The names of the embedders and models, which the prose of our copy does not give. Those below are stand-ins: put the
    paper's in their place.
  - Token usage is "T = (LR × 4)/3" with LR "the length of the response", without a unit. `paper_token_usage` takes it
    to mean words; counted tokens are reported next to it.
  - Which embedder makes the vectors of the score. Assumption: one for all cells (`score_embedder`).
  - How many chunks are retrieved before the thresholds. Assumption: 20, as in docs/benchmarks/thresholds.md.
  - Whose tokens the 1,000 are. Assumption: those of cl100k_base.
  - Whether MedQA's choices were shown. Assumption: they were, and the text of the right one is the reference.
  - The scale of the thresholds. Here they are cosines in every store. In what order the chunks stand: assumption, by
    their scores.
  - Whether a cell without compression has no thresholds at all. Assumption: it does not (the second grid, whose cells
    come on top of the 23,625).

To do:
  - pip install langchain-chroma langchain-community faiss-cpu langchain-pinecone
  - sec-10-q of github.com/docugami/KG-RAG-datasets (qna_data.csv and docs/) into data/sec-10-q.
  - `llamaindex-cli download-llamadataset Llama2PaperDataset --download-dir data/llama2`, and in that folder
    jq -c '.examples[] | {question: .query, answer: .reference_answer, document: "*"}' rag_dataset.json >questions.jsonl
  - the data of github.com/jind11/MedQA: questions/US/test.jsonl into data/medqa, textbooks/en as data/medqa/textbooks.
  - an index of Pinecone for each dimension of an embedder, named by it, such as oprag-3072, with the metric cosine.
  - Set OPENAI_API_KEY and PINECONE_API_KEY; give prices and limits.
Time, processor and memory: `oprag compare sakar_emekci.py:experiment --measure`, one question at a time.
"""

from pathlib import Path

from oprag.compare import EmbedderSpec, Experiment, ModelSpec, read_data

FOLDER = Path(__file__).parent
KG_RAG = "sec-10-q of https://github.com/docugami/KG-RAG-datasets (qna_data.csv and docs/), into data/sec-10-q"
MED_QA = "the data of https://github.com/jind11/MedQA, into data/medqa"

experiment = Experiment(
    name="sakar-emekci",
    metrics=["answer_cosine", "paper_token_usage"],
    count_tokens="tiktoken:cl100k_base",
    score_embedder="huggingface:sentence-transformers/all-MiniLM-L6-v2",
    data={
        # References without their line of sources.
        "sec_10q": read_data(
            FOLDER / "data/sec-10-q/qna_data.csv", "kg_rag", name="sec_10q", source_line=False, size=195, source=KG_RAG
        ).sample(10),
        "llama2": read_data(
            FOLDER / "data/llama2/questions.jsonl",
            "oprag",
            name="llama2",
            documents=FOLDER / "data/llama2/source_files",
            size=100,
            source="llamaindex-cli download-llamadataset Llama2PaperDataset --download-dir data/llama2; then see above",
        ).sample(10),
        "medqa": read_data(
            FOLDER / "data/medqa/test.jsonl",
            "medqa",
            name="medqa",
            documents=FOLDER / "data/medqa/textbooks",
            size=1_273,
            source=MED_QA,
        ).sample(10),
    },
    models={
        "gpt_4o_mini": ModelSpec(
            "openai:gpt-4o-mini",
            temperature=0,
            max_tokens=512,
        ),
        "llama_8b": ModelSpec(
            "openai:meta-llama/Llama-3.1-8B-Instruct",  # the name under which your server has it
            base_url="http://localhost:8001/v1",
            temperature=0,
            max_tokens=512,
        ),
    },
    embedders={
        "openai": EmbedderSpec(
            "openai:text-embedding-3-large",
            tokenizer="tiktoken:cl100k_base",
        ),
        "bge": EmbedderSpec(
            "huggingface:BAAI/bge-large-en-v1.5",
            question_prefix="Represent this sentence for searching relevant passages: ",
            tokenizer="tiktoken:cl100k_base",
        ),
    },
    prompts={
        "choice_instruction": "Answer with the text of the right choice, and nothing else.",  # a letter has no cosine
    },
    grid=[
        {
            "method": ["stuff", "map_reduce", "map_rerank", "refine", "step_down", "reciprocal"],
            "store": ["chroma", "faiss", "pinecone"],
            "embedder": ["openai", "bge"],
            "model": ["gpt_4o_mini", "llama_8b"],
            "splitter": "recursive",
            "chunk_size": 1_000,
            "chunk_overlap": 100,
            "k": 20,
            "order": "rank",
            "stitch": False,  # each chunk is read by itself
            "similarity_threshold": [0.5, 0.6, 0.7, 0.8, 0.9],
            "redundancy_threshold": [0.5, 0.6, 0.7, 0.8, 0.9],
        },
        # Without compression.
        {
            "method": ["stuff", "map_reduce", "map_rerank", "refine", "step_down", "reciprocal"],
            "store": ["chroma", "faiss", "pinecone"],
            "embedder": ["openai", "bge"],
            "model": ["gpt_4o_mini", "llama_8b"],
            "splitter": "recursive",
            "chunk_size": 1_000,
            "chunk_overlap": 100,
            "k": 20,
            "order": "rank",
            "stitch": False,  # each chunk is read by itself
        },
    ],
)
