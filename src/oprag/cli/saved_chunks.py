"""Reading chunks that were saved: JSON, our own index, and the folders of Chroma, LanceDB and LlamaIndex.

Nothing that is opened is changed, and nothing in it is run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from oprag.compare.data.builder import DataSetBuilder, RecordError
from oprag.compare.data.records import json_records
from oprag.errors import DataError, InputFileError, MissingExtraError, OpragError, OptionError
from oprag.files.opening import open_regular
from oprag.index.file import read_contents
from oprag.masking import describe, listed, masked_error
from oprag.positions.insertion_order import StoredChunk
from oprag.stores.adapter import StoreAdapter
from oprag.stores.chroma import LangChainChroma
from oprag.stores.chroma_file import CHROMA_FILE, ChromaFile
from oprag.stores.docstore import LlamaIndexSimpleDocstore
from oprag.stores.faiss import LlamaIndexFaiss
from oprag.stores.in_memory import LangChainInMemory, LlamaIndexSimple
from oprag.stores.lancedb import LangChainLanceDB
from oprag.stores.llama_index_nodes import NODE_FIELD

__all__ = ["SavedChunks", "open_saved"]

_LLAMA_INDEX, _FAISS = "docstore.json", "index.pkl"
_LLAMA_INDEX_VECTORS = "default__vector_store.json"
_ZIP, _PICKLE = b"PK\x03\x04", b"\x80"


class SavedChunks(NamedTuple):
    """The chunks of a file or a folder.

    Attributes:
        name: The kind of store or file, such as "Chroma".
        rows: The chunks.
        adapter: The adapter of such a store; None for a list.
        in_insertion_order: Whether a store received them in this sequence.
        total: Their number, if it is known.
    """

    name: str
    rows: Iterable[StoredChunk]
    adapter: type[StoreAdapter] | None = None
    in_insertion_order: bool = False
    total: int | None = None


@contextmanager
def open_saved(path: Path, collection: str | None, most: int) -> Iterator[SavedChunks]:
    """Open what a path leads to, for as long as its chunks are read.

    Args:
        path: A file or a folder.
        collection: The collection or table of a folder that has several.
        most: How many chunks will be read at most.
    """
    if path.name in (CHROMA_FILE, _LLAMA_INDEX):
        path = path.parent
    with _readable(path):
        if path.is_dir():
            with _opened_folder(path, collection, most) as found:
                yield found
        elif collection is not None:
            raise OptionError("--collection needs a folder of Chroma or LanceDB", collection)
        else:
            yield _read_file(path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Make one kind of error of all that readers of damaged files raise."""
    try:
        yield
    except (InputFileError, OptionError, DataError, MissingExtraError, KeyboardInterrupt, SystemExit):
        raise
    except OpragError as error:
        raise InputFileError(str(error), str(path)) from error
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror or error}", str(path)) from error
    # What panics in Rust, as LanceDB does, is no Exception.
    except BaseException as error:
        raise InputFileError(f"cannot read {path}, which may be damaged: {masked_error(error)}", str(path)) from error


def _read_file(path: Path) -> SavedChunks:
    with open_regular(path) as file:
        start = file.peek(len(_ZIP))
        if start.startswith(_ZIP):
            _, contents = read_contents(file, path)
            both = zip(contents.texts, contents.metadata, strict=True)
            rows = [StoredChunk(str(row), *one) for row, one in enumerate(both)]
            return SavedChunks("DocumentIndex", rows, total=len(rows))
    if start.startswith(_PICKLE):
        raise InputFileError(f"{path} is a pickle; loading one can run code, so it is not read", str(path))
    return _read_json(path)


def _read_json(path: Path) -> SavedChunks:
    """Documents, or LangChain's `InMemoryVectorStore` as it dumps itself: an object with a document under each id."""
    builder = DataSetBuilder(path)
    rows: list[StoredChunk] = []
    dumped = False
    for record in json_records(builder, path, with_nan=True):
        documents = [record.fields]
        if record.fields and all(isinstance(one, dict) and "text" in one for one in record.fields.values()):
            dumped, documents = True, list(record.fields.values())
        with builder.at(record.place):
            rows += map(_row, documents)
    builder.check()
    if dumped:
        return SavedChunks("InMemoryVectorStore", rows, LangChainInMemory, in_insertion_order=True, total=len(rows))
    return SavedChunks("documents", rows, total=len(rows))


def _row(fields: Mapping[str, Any]) -> StoredChunk:
    text, metadata = fields.get("text", fields.get("page_content")), fields.get("metadata")
    if not isinstance(text, str):
        raise RecordError(f"text or page_content must be a string, got {describe(text)}")
    if not isinstance(metadata, dict | None):
        raise RecordError(f"metadata must be an object, got {describe(metadata)}")
    return StoredChunk(str(fields.get("id") or ""), text, metadata or {})


@contextmanager
def _opened_folder(path: Path, collection: str | None, most: int) -> Iterator[SavedChunks]:
    if (path / CHROMA_FILE).is_file():
        with ChromaFile(path / CHROMA_FILE) as file:
            rows = file.chunks(_only(file.collections(), collection, "collection", path))
            yield SavedChunks("Chroma", rows, LangChainChroma, in_insertion_order=True)
    elif any(path.glob("*.lance")):
        yield _read_lancedb(path, collection, most)
    elif (path / _LLAMA_INDEX).is_file():
        if collection is not None:
            raise OptionError("--collection needs a folder of Chroma or LanceDB", collection)
        yield _read_llama_index(path)
    elif (path / _FAISS).is_file():
        raise InputFileError(
            f"{path} has a pickle in it, as FAISS folders of LangChain do, which can run code when it is loaded; if "
            "you trust it, check it in Python: check_positions(FAISS.load_local(folder, embeddings, "
            "allow_dangerous_deserialization=True))",
            str(path),
        )
    else:
        raise InputFileError(f"{path} is not a folder of Chroma, LanceDB or LlamaIndex", str(path))


def _read_lancedb(path: Path, collection: str | None, most: int) -> SavedChunks:
    with _needing("lancedb", path):
        import lancedb
    connection = lancedb.connect(path)
    name = _only(list(connection.table_names()), collection, "table", path)
    table = connection.open_table(name)
    missing = {"id", "text", "metadata"}.difference(table.schema.names)
    if missing:
        raise InputFileError(f"the table {describe(name)} of {path} has no column {listed(sorted(missing))}", str(path))
    total = table.count_rows()
    # One more tells whether these are all.
    found = table.search().select(["id", "text", "metadata"]).limit(min(total, most + 1)).to_arrow().to_pylist()
    rows = [StoredChunk(str(row["id"]), row["text"] or "", row["metadata"] or {}) for row in found]
    # LlamaIndex is not known to search it in this sequence.
    known = not any(NODE_FIELD in row.metadata for row in rows)
    return SavedChunks("LanceDB", rows, LangChainLanceDB, known, total)


def _read_llama_index(path: Path) -> SavedChunks:
    with _needing("llama-index-core", path):
        from llama_index.core.schema import Document
        from llama_index.core.storage.docstore import SimpleDocumentStore
        from llama_index.core.vector_stores import SimpleVectorStore
    docstore = SimpleDocumentStore.from_persist_dir(str(path))
    listed = (path / _LLAMA_INDEX_VECTORS).is_file()
    if listed and not _is_json(path / _LLAMA_INDEX_VECTORS):
        # FAISS writes its index there; the file of the index structure has the rows.
        nodes = _rows_of_vectors(path)
        rows: Iterable[StoredChunk] = LlamaIndexFaiss(None, nodes=nodes, docstore=docstore).chunks() or ()
        return SavedChunks("FaissVectorStore", rows, LlamaIndexFaiss, in_insertion_order=True)
    if listed:
        vectors = SimpleVectorStore.from_persist_dir(str(path))
        rows = list(LlamaIndexSimple(vectors, docstore=docstore).chunks() or ())
        # An index without vectors has an empty one.
        if rows:
            return SavedChunks("SimpleVectorStore", rows, LlamaIndexSimple, in_insertion_order=True)
    rows = list(LlamaIndexSimpleDocstore(docstore).chunks())
    if rows and all(isinstance(row.node, Document) for row in rows):
        raise InputFileError(
            f"{path} contains the documents of an ingestion pipeline and no chunks; check the vector store that the "
            "pipeline fills",
            str(path),
        )
    return SavedChunks("SimpleDocumentStore", rows, LlamaIndexSimpleDocstore, in_insertion_order=listed)


def _is_json(path: Path) -> bool:
    with open_regular(path) as file:
        return file.peek(1)[:1] == b"{"


def _rows_of_vectors(path: Path) -> dict[str, str]:
    """The ids of nodes by the rows of their vectors, from a saved index."""
    from llama_index.core.storage.index_store import SimpleIndexStore

    structs = SimpleIndexStore.from_persist_dir(str(path)).index_structs()
    if len(structs) != 1 or not hasattr(structs[0], "nodes_dict"):
        message = f"{path} contains {len(structs)} indexes; load one and use check_positions(index)"
        raise InputFileError(message, str(path))
    return dict(structs[0].nodes_dict)


@contextmanager
def _needing(packages: str, path: Path) -> Iterator[None]:
    """Say what has to be installed to check a path."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(f"Checking {path}", packages, f"pip install {packages}") from error


def _only(names: Sequence[str], given: str | None, kind: str, path: Path) -> str:
    """The collection or table that was given, else the only one."""
    if given is None and len(names) == 1:
        return names[0]
    if given is None:
        raise OptionError(f"name a {kind} of {path} with --collection; it has {listed(names)}", given)
    if given not in names:
        raise OptionError(f"{path} has no {kind} {describe(given)}; it has {listed(names)}", given)
    return given
