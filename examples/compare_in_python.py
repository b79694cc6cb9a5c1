"""Compare orders and numbers of chunks over ten questions, without a model: evidence coverage and inverted pairs.

pip install 'oprag[compare]'
"""

from pydoc_data.topics import topics  # the Python language reference

from oprag.compare import DataSet, Evidence, Experiment, Question, compare

text = "\n\n".join(topics.values())
questions = []
for name in ("with", "try", "raise", "for", "while", "import", "yield", "lambda", "del", "global"):
    start = text.index(topics[name])
    evidence = Evidence("reference", start, start + len(topics[name]))
    question = f"How does the {name} statement work?"
    questions.append(Question(id=name, text=question, documents=("reference",), evidence=(evidence,)))

experiment = Experiment(
    name="orders",
    data={"reference": DataSet(name="reference", documents={"reference": text}, questions=questions)},
    grid={"method": "context_only", "k": [8, 32], "order": ["source", "rank", "random"]},
    metrics=["evidence_coverage", "inverted_pairs"],
)
results = compare(experiment, "results.db")
for row in results.rows:
    print(row["order"], row["k"], *(f"{metric}={row[metric]:.3f}" for metric in results.metrics))
