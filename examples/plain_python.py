"""Without a framework: index a text, search it, and build the context for a prompt.

pip install 'oprag[local]'
"""

from pydoc_data.topics import topics  # the Python language reference

from oprag import DocumentIndex, LocalEmbedder, build_context

embedder = LocalEmbedder()
texts = {name: topics[name] for name in ("with", "try", "raise")}
index = DocumentIndex.from_texts(texts, embedder, embedder.tokenizer, chunk_size=64)
chunks = index.search("What happens when an exception is raised inside a with statement?", k=32)

before = build_context(chunks, k=4, order="rank")
after = build_context(chunks, k=4, token_budget=500, gap="[...]", header="# {source}, characters {start} to {end}")

for name, context in (("rank order:  ", before), ("source order:", after)):
    print(name, [f"{chunk.source}:{chunk.span.start}" for chunk in context.kept if chunk.span])
print(after.text)
