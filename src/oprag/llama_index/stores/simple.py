"""LlamaIndex's store in memory."""

from collections.abc import Mapping, Sequence

from oprag.embedding.vectors import Record
from oprag.llama_index.stores.adapter import Searched, StoreAdapter
from oprag.llama_index.stores.texts import texts_of

__all__ = ["ADAPTER"]


def _read(searched: Searched, ids: Sequence[str]) -> Mapping[str, Record]:
    vectors, texts = searched.vector_store.data.embedding_dict, texts_of(searched, ids)
    return {name: Record(vectors[name], texts.get(name)) for name in ids if name in vectors}


async def _aread(searched: Searched, ids: Sequence[str]) -> Mapping[str, Record]:
    # A look into a dictionary is not worth a thread.
    return _read(searched, ids)


ADAPTER = StoreAdapter(_read, _aread)
