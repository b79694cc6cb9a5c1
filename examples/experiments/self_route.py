"""Self-Route (Li et al. 2024, arXiv 2407.16833): the whole text only where the model says "unanswerable" at first.

Published:
  - About 82 % of the queries of Gemini-1.5-Pro end at the first step.
  - Scores are F1, accuracy and ROUGE, and the share of the tokens of long context that was spent.
  - In the table of OP-RAG (arXiv 2409.01666) it has, with GPT-4o and Gemini-1.5-Pro, 34.95 and 37.51 F1 on En.QA (85K
    and 83K tokens), 77.29 and 76.86 accuracy on En.MC (62K each).

Said by the paper: chunks of 300 words, the 5 best, the encoders Contriever and Dragon, and the words "write
unanswerable if the query can not be answered based on the provided text".
Not said, or said in two ways:
  - Words or tokens: a review of the paper says 300 tokens. Both are here (the axis `splitter`); tokens are those of
    the encoder.
  - Which sets: nine, seven of LongBench and two of ∞Bench, as summaries of the paper list them. On QMSum read ROUGE,
    on En.MC accuracy, else F1.
  - En.MC: 229 questions in the published file; other papers count fewer.
  - Which weights: "Contriever" and "Dragon" name families. Assumption: facebook/contriever and facebook/dragon-plus-*;
    self_route_encoders.py takes others. Chunks are ranked by cosine.
  - The order of the chunks. Assumption: by their scores.
  - The rest of the prompts, which are oprag's own, and the length of replies.
  - What happened to texts that are longer than a window. Assumption: cut in the middle, with room for the reply.
  - The versions of the models. Providers retire them; another version is another experiment.
  - The share of long context: `long_context_share` is a mean over questions, and above 1 where one was routed on.
    A share of all tokens is their sum in the results file over that of long_context.

How many queries end at the first step is in the calls of an answer: 1, or 2 where it was routed on. So the mean number
of calls less 1 is the share that was routed on.

To do: put longbook_qa_eng.jsonl and longbook_choice_eng.jsonl of huggingface.co/datasets/xinrongzhang2022/InfiniteBench
into data/, and the seven files of LongBench (data.zip of huggingface.co/datasets/THUDM/LongBench) into data/LongBench.
Set OPENAI_API_KEY and GOOGLE_API_KEY; give prices and limits.
"""

from pathlib import Path

from self_route_encoders import contriever, dragon

from oprag.compare import EmbedderSpec, Experiment, ModelSpec, read_data

FOLDER = Path(__file__).parent
INFINITE_BENCH = "hf download xinrongzhang2022/InfiniteBench --repo-type dataset --local-dir data"
LONG_BENCH = (
    "hf download THUDM/LongBench data.zip --repo-type dataset --local-dir data; "
    "unzip -j data/data.zip -d data/LongBench"
)

experiment = Experiment(
    name="self-route",
    metrics=["token_f1", "choice_accuracy", "rouge_l", "long_context_share"],
    # One counter for all readers: that of GPT-4o.
    count_tokens="tiktoken:o200k_base",
    data={
        "narrativeqa": read_data(
            FOLDER / "data/LongBench/narrativeqa.jsonl", "longbench", name="narrativeqa", size=200, source=LONG_BENCH
        ),
        "qasper": read_data(
            FOLDER / "data/LongBench/qasper.jsonl", "longbench", name="qasper", size=200, source=LONG_BENCH
        ),
        "multifieldqa": read_data(
            FOLDER / "data/LongBench/multifieldqa_en.jsonl",
            "longbench",
            name="multifieldqa",
            size=150,
            source=LONG_BENCH,
        ),
        "hotpotqa": read_data(
            FOLDER / "data/LongBench/hotpotqa.jsonl", "longbench", name="hotpotqa", size=200, source=LONG_BENCH
        ),
        "2wikimqa": read_data(
            FOLDER / "data/LongBench/2wikimqa.jsonl", "longbench", name="2wikimqa", size=200, source=LONG_BENCH
        ),
        "musique": read_data(
            FOLDER / "data/LongBench/musique.jsonl", "longbench", name="musique", size=200, source=LONG_BENCH
        ),
        "qmsum": read_data(
            FOLDER / "data/LongBench/qmsum.jsonl", "longbench", name="qmsum", size=200, source=LONG_BENCH
        ),
        "en_qa": read_data(
            FOLDER / "data/longbook_qa_eng.jsonl", "infinitebench", name="en_qa", size=351, source=INFINITE_BENCH
        ),
        "en_mc": read_data(
            FOLDER / "data/longbook_choice_eng.jsonl", "infinitebench", name="en_mc", size=229, source=INFINITE_BENCH
        ),
    },
    models={
        "gemini_15_pro": ModelSpec(
            "google_genai:gemini-1.5-pro",
            temperature=0,
            max_tokens=512,
        ),
        "gpt_4o": ModelSpec(
            "openai:gpt-4o",
            temperature=0,
            max_tokens=512,
        ),
        "gpt_35_turbo": ModelSpec(
            "openai:gpt-3.5-turbo",
            temperature=0,
            max_tokens=512,
        ),
    },
    embedders={
        "contriever": EmbedderSpec(
            contriever(model="facebook/contriever"), tokenizer="huggingface:facebook/contriever"
        ),
        "dragon": EmbedderSpec(
            dragon(
                question_model="facebook/dragon-plus-query-encoder",
                document_model="facebook/dragon-plus-context-encoder",
            ),
            tokenizer="huggingface:facebook/dragon-plus-context-encoder",
        ),
    },
    prompts={
        "route": """Text:
{context}

Question: {question}
{instruction} Answer from the provided text alone. Write unanswerable if the query can not be answered based on the \
provided text.""",
    },
    grid=[
        {
            "method": ["stuff", "self_route"],
            "model": "gemini_15_pro",
            "splitter": ["words", "tokens"],
            "chunk_size": 300,
            "chunk_overlap": 0,
            "embedder": ["contriever", "dragon"],
            "k": 5,
            "order": "rank",
        },
        {
            "method": ["stuff", "self_route"],
            "model": "gpt_4o",
            "splitter": ["words", "tokens"],
            "chunk_size": 300,
            "chunk_overlap": 0,
            "embedder": ["contriever", "dragon"],
            "k": 5,
            "order": "rank",
            "source_token_budget": 120_000,
            "overflow": "truncate_middle",
        },
        {
            "method": ["stuff", "self_route"],
            "model": "gpt_35_turbo",
            "splitter": ["words", "tokens"],
            "chunk_size": 300,
            "chunk_overlap": 0,
            "embedder": ["contriever", "dragon"],
            "k": 5,
            "order": "rank",
            "source_token_budget": 15_000,
            "overflow": "truncate_middle",
        },
        # Long context; retrieval only finds which text it is. The second step of self_route reads the same.
        {
            "method": "long_context",
            "model": "gemini_15_pro",
            "splitter": "words",
            "chunk_size": 300,
            "chunk_overlap": 0,
            "k": 5,
            "order": "rank",
        },
        {
            "method": "long_context",
            "model": "gpt_4o",
            "splitter": "words",
            "chunk_size": 300,
            "chunk_overlap": 0,
            "k": 5,
            "order": "rank",
            "source_token_budget": 120_000,
            "overflow": "truncate_middle",
        },
        {
            "method": "long_context",
            "model": "gpt_35_turbo",
            "splitter": "words",
            "chunk_size": 300,
            "chunk_overlap": 0,
            "k": 5,
            "order": "rank",
            "source_token_budget": 15_000,
            "overflow": "truncate_middle",
        },
    ],
)
