"""Reads saved chunks: JSON, a `DocumentIndex` file, and folders of Chroma, LanceDB and LlamaIndex.

Files are opened read-only, and no code in them is executed.
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
from oprag.stores.adapter import StoreAdapter, StoredChunk
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
        adapter: The adapter for this kind of store; None if the chunks do not come from a store.
        in_insertion_order: Whether the rows are in the order in which they were added to the store.
    """

    name: str
    rows: Iterable[StoredChunk]
    adapter: type[StoreAdapter] | None = None
    in_insertion_order: bool = False


@contextmanager
def open_saved(path: Path, collection: str | None, max_chunks: int) -> Iterator[SavedChunks]:
    """Open a file or folder of saved chunks, and close it when the block ends.

    Args:
        path: A file or a folder.
        collection: The collection or table of a folder that has several.
        max_chunks: Maximum number of chunks that the caller will read.
    """
    if path.name in (CHROMA_FILE, _LLAMA_INDEX):
        path = path.parent
    with _readable(path):
        if path.is_dir():
            with _opened_folder(path, collection, max_chunks) as found:
                yield found
        elif collection is not None:
            raise OptionError(
                f"--collection requires a Chroma or LanceDB folder, got {path}; remove --collection", collection
            )
        else:
            yield _read_file(path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Convert whatever readers raise for damaged files to `InputFileError`."""
    try:
        yield
    except (InputFileError, OptionError, DataError, MissingExtraError, KeyboardInterrupt, SystemExit):
        raise
    except OpragError as error:
        raise InputFileError(str(error), str(path)) from error
    except OSError as error:
        raise InputFileError(f"cannot read {path}: {error.strerror or error}", str(path)) from error
    # A panic in Rust code, such as LanceDB's, is not an Exception.
    except BaseException as error:
        raise InputFileError(f"cannot read {path}, which may be corrupt: {masked_error(error)}", str(path)) from error


def _read_file(path: Path) -> SavedChunks:
    with open_regular(path) as file:
        start = file.peek(len(_ZIP))
        if start.startswith(_ZIP):
            _, contents = read_contents(file, path)
            both = zip(contents.texts, contents.metadata, strict=True)
            rows = [StoredChunk(str(row), *one) for row, one in enumerate(both)]
            return SavedChunks("DocumentIndex", rows)
    if start.startswith(_PICKLE):
        raise InputFileError(f"{path} is a pickle; it was not read, because loading a pickle can run code", str(path))
    return _read_json(path)


def _read_json(path: Path) -> SavedChunks:
    """Read documents, or a dump of LangChain's `InMemoryVectorStore`: an object that maps ids to documents."""
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
        return SavedChunks("InMemoryVectorStore", rows, LangChainInMemory, in_insertion_order=True)
    return SavedChunks("documents", rows)


def _row(fields: Mapping[str, Any]) -> StoredChunk:
    text, metadata = fields.get("text", fields.get("page_content")), fields.get("metadata")
    if not isinstance(text, str):
        raise RecordError(f"text or page_content must be a string, got {describe(text)}")
    if not isinstance(metadata, dict | None):
        raise RecordError(f"metadata must be an object, got {describe(metadata)}")
    return StoredChunk(str(fields.get("id") or ""), text, metadata or {})


@contextmanager
def _opened_folder(path: Path, collection: str | None, max_chunks: int) -> Iterator[SavedChunks]:
    if (path / CHROMA_FILE).is_file():
        with ChromaFile(path / CHROMA_FILE) as file:
            rows = file.chunks(_only(file.collections(), collection, "collection", path))
            yield SavedChunks("Chroma", rows, LangChainChroma, in_insertion_order=True)
    elif any(path.glob("*.lance")):
        yield _read_lancedb(path, collection, max_chunks)
    elif (path / _LLAMA_INDEX).is_file():
        if collection is not None:
            raise OptionError(
                f"--collection requires a Chroma or LanceDB folder, got {path}; remove --collection", collection
            )
        yield _read_llama_index(path)
    elif (path / _FAISS).is_file():
        raise InputFileError(
            f"{path} is a LangChain FAISS folder, which contains a pickle, and loading a pickle can run code; if you "
            "trust it, check it in Python: check_positions(FAISS.load_local(folder, embeddings, "
            "allow_dangerous_deserialization=True))",
            str(path),
        )
    else:
        raise InputFileError(f"{path} is not a Chroma, LanceDB or LlamaIndex folder", str(path))


def _read_lancedb(path: Path, collection: str | None, max_chunks: int) -> SavedChunks:
    with _needing("lancedb", path):
        import lancedb
    connection = lancedb.connect(path)
    name = _only(list(connection.table_names()), collection, "table", path)
    table = connection.open_table(name)
    missing = {"id", "text", "metadata"}.difference(table.schema.names)
    if missing:
        raise InputFileError(f"the table {describe(name)} of {path} has no column {listed(sorted(missing))}", str(path))
    total = table.count_rows()
    # One more than `max_chunks`, so that the caller can tell whether the list is complete.
    found = table.search().select(["id", "text", "metadata"]).limit(min(total, max_chunks + 1)).to_arrow().to_pylist()
    rows = [StoredChunk(str(row["id"]), row["text"] or "", row["metadata"] or {}) for row in found]
    # LlamaIndex does not guarantee that a search returns rows in insertion order.
    known = not any(NODE_FIELD in row.metadata for row in rows)
    return SavedChunks("LanceDB", rows, LangChainLanceDB, known)


def _read_llama_index(path: Path) -> SavedChunks:
    with _needing("llama-index-core", path):
        from llama_index.core.schema import Document
        from llama_index.core.storage.docstore import SimpleDocumentStore
        from llama_index.core.vector_stores import SimpleVectorStore
    docstore = SimpleDocumentStore.from_persist_dir(str(path))
    listed = (path / _LLAMA_INDEX_VECTORS).is_file()
    if listed and not _is_json(path / _LLAMA_INDEX_VECTORS):
        # FAISS writes its binary index to this file; the index store maps its rows to nodes.
        nodes = _rows_of_vectors(path)
        rows: Iterable[StoredChunk] = LlamaIndexFaiss(None, nodes=nodes, docstore=docstore).chunks() or ()
        return SavedChunks("FaissVectorStore", rows, LlamaIndexFaiss, in_insertion_order=True)
    if listed:
        vectors = SimpleVectorStore.from_persist_dir(str(path))
        rows = list(LlamaIndexSimple(vectors, docstore=docstore).chunks())
        # An index without vectors has an empty vector store; fall through to the docstore.
        if rows:
            return SavedChunks("SimpleVectorStore", rows, LlamaIndexSimple, in_insertion_order=True)
    rows = list(LlamaIndexSimpleDocstore(docstore).chunks())
    if rows and all(isinstance(row.node, Document) for row in rows):
        raise InputFileError(
            f"{path} contains the documents of an ingestion pipeline but no chunks; check the vector store that the "
            "pipeline writes to",
            str(path),
        )
    return SavedChunks("SimpleDocumentStore", rows, LlamaIndexSimpleDocstore, in_insertion_order=listed)


def _is_json(path: Path) -> bool:
    with open_regular(path) as file:
        return file.peek(1)[:1] == b"{"


def _rows_of_vectors(path: Path) -> dict[str, str]:
    """Read the mapping of vector rows to node ids from a saved index."""
    from llama_index.core.storage.index_store import SimpleIndexStore

    structs = SimpleIndexStore.from_persist_dir(str(path)).index_structs()
    if len(structs) != 1 or not hasattr(structs[0], "nodes_dict"):
        message = f"{path} contains {len(structs)} indexes; load one and use check_positions(index)"
        raise InputFileError(message, str(path))
    return dict(structs[0].nodes_dict)


@contextmanager
def _needing(packages: str, path: Path) -> Iterator[None]:
    """Convert ImportError to an error that names the packages to install."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(f"Checking {path}", packages, f"pip install {packages}") from error


def _only(names: Sequence[str], given: str | None, kind: str, path: Path) -> str:
    """Return the given collection or table, or the only one if none is given."""
    if given is None and len(names) == 1:
        return names[0]
    if given is None:
        raise OptionError(f"{path} does not have exactly one {kind}; choose with --collection: {listed(names)}", given)
    if given not in names:
        raise OptionError(f"{path} has no {kind} {describe(given)}; choose one of {listed(names)}", given)
    return given
