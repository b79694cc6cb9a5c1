"""LlamaIndex postprocessor: the same nodes, in the order of their source.

pip install 'oprag[llama-index,local]'
"""

from pydoc_data.topics import topics  # the Python language reference

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter

from oprag.llama_index import LocalEmbedding, OrderPreservingPostprocessor, StampPositions

reference = Document(text="\n\n".join(topics.values()), metadata={"file_name": "reference"})
steps = [SentenceSplitter(chunk_size=160, chunk_overlap=20), StampPositions()]
index = VectorStoreIndex.from_documents([reference], transformations=steps, embed_model=LocalEmbedding())
llm = MockLLM()  # your model here

before = index.as_query_engine(llm, similarity_top_k=8)
after = index.as_query_engine(llm, similarity_top_k=8, node_postprocessors=[OrderPreservingPostprocessor(index=index)])

for name, engine in (("before:", before), ("after: ", after)):
    response = engine.query("What happens when an exception is raised inside a with statement?")
    print(name, [scored.metadata["chunk_index"] for scored in response.source_nodes])
