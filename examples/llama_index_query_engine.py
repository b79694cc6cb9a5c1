"""LlamaIndex query engine: OrderPreservingQueryEngine in place of RetrieverQueryEngine.

pip install 'oprag[llama-index,local]'
"""

from pydoc_data.topics import topics  # the Python language reference

from llama_index.core import Document, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.query_engine import RetrieverQueryEngine

from oprag.llama_index import LocalEmbedding, OrderPreservingQueryEngine, StampPositions

documents = [Document(text=topics["try"], metadata={"file_name": "try"})]
steps = [SentenceSplitter(chunk_size=160, chunk_overlap=20), StampPositions()]
index = VectorStoreIndex.from_documents(documents, transformations=steps, embed_model=LocalEmbedding())
retriever = index.as_retriever(similarity_top_k=8)
llm = MockLLM(max_tokens=8)  # your model here

before = RetrieverQueryEngine.from_args(retriever, llm)
after = OrderPreservingQueryEngine(retriever=retriever, llm=llm)
for name, engine in (("before:", before), ("after: ", after)):
    response = engine.query("What happens when no except clause matches the exception?")
    print(name, [scored.metadata["chunk_index"] for scored in response.source_nodes])
