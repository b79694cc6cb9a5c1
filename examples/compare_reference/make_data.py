"""Write reference/: the Python language reference, which comes with Python, and ten questions about it."""

import json
from pathlib import Path
from pydoc_data.topics import topics

HERE = Path(__file__).parent

folder = HERE / "reference"
folder.mkdir(exist_ok=True)
text = "\n\n".join(topics.values())
(folder / "reference.md").write_text(text, encoding="utf-8", newline="\n")
with (folder / "questions.jsonl").open("w", encoding="utf-8") as questions:
    for line in (HERE / "summaries.jsonl").read_text(encoding="utf-8").splitlines():
        given = json.loads(line)
        # The evidence is the whole text of each topic that the summary covers.
        starts = {topic: text.index(topics[topic]) for topic in given["topics"]}
        evidence = [{"start": start, "end": start + len(topics[topic])} for topic, start in starts.items()]
        question = {"question": given["question"], "answers": [given["summary"]], "evidence": evidence}
        questions.write(json.dumps(question | {"path": "reference.md"}) + "\n")
