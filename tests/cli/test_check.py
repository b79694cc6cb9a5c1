"""`oprag check`, run as a user runs it, over files and folders that it must not change."""

import gzip
import json
import math
import os
import random
import re
import sqlite3
import sys

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaDocument
from llama_index.core import MockEmbedding, SummaryIndex, VectorStoreIndex
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.schema import TextNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.vector_stores.utils import node_to_metadata_dict
from typer.testing import CliRunner

from oprag import DocumentIndex, LocalEmbedder
from oprag.cli.app import app
from tests.helpers import prose

FINE, INVALID_INPUT, PROBLEMS_FOUND = 0, 2, 3
TEXT = prose(900, seed=21)
PIECES = [TEXT[start : start + 200] for start in range(0, len(TEXT) - 40, 160)]


def run(*arguments):
    result = CliRunner().invoke(app, ["check", *map(str, arguments)], env={"COLUMNS": "200"})
    assert isinstance(result.exception, SystemExit | None), result.exception
    assert "Traceback" not in result.output
    return result


def told(*arguments, code):
    result = run(*arguments)
    assert result.exit_code == code, result.output
    return result.stdout if code != INVALID_INPUT else result.stderr


def rows(source="book.txt", **metadata):
    return [{"id": str(n), "text": text, "metadata": {"source": source, **metadata}} for n, text in enumerate(PIECES)]


def with_offsets(source="book.txt"):
    return [{**row, "metadata": {**row["metadata"], "start_index": TEXT.index(row["text"])}} for row in rows(source)]


def write(path, documents, form="lines"):
    text = json.dumps(documents) if form == "list" else "\n".join(map(json.dumps, documents))
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def state(folder):
    """Every file of a folder: its bytes, and when they were written."""
    files = [folder, *sorted(folder.rglob("*"))]
    return [(path, path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"") for path in files]


# Files.


@pytest.mark.parametrize(
    ("name", "form"),
    [("docs.jsonl", "lines"), ("docs.json", "list"), ("docs.json", "lines"), ("docs.jsonl.gz", "lines")],
)
def test_documents_as_json(tmp_path, name, form):
    path = write(tmp_path / name, with_offsets(), form)
    output = told(path, code=FINE)
    assert output.startswith(f"documents: {len(PIECES)} chunks from 1 source; no problems found\n")
    assert "kind 3, offset: start_index" in output


def test_documents_of_langchain(tmp_path):
    documents = [Document(row["text"], metadata=row["metadata"]).model_dump() for row in rows()]
    output = told(write(tmp_path / "docs.jsonl", documents), code=PROBLEMS_FOUND)
    assert "Problem: chunks of a source have no position, so their order is unknown (book.txt)" in output
    assert "    documents = stamp_positions(documents)  # and fill a new store\n" in output


def test_a_store_of_langchain_that_dumped_itself(tmp_path):
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=4))
    store.add_documents([Document(row["text"], metadata=row["metadata"]) for row in rows()])
    store.dump(str(tmp_path / "store.json"))
    output = told(tmp_path / "store.json", code=FINE)
    assert output.startswith("InMemoryVectorStore: ")
    assert "kind 6, insertion order: " in output


@pytest.mark.parametrize("embedded", [False, True])
def test_an_index_of_our_own(tmp_path, embedded):
    path = tmp_path / "index.npz"
    DocumentIndex.from_texts({"book.txt": TEXT}, LocalEmbedder() if embedded else None).save(path)
    assert "kind 1, stamped: chunk_index" in told(path, code=FINE)


# Folders.


@pytest.fixture
def persisted(tmp_path):
    documents = [LlamaDocument(text=TEXT, metadata={"file_name": name}) for name in ("a.txt", "b.txt")]
    splitter = SentenceSplitter(chunk_size=128, chunk_overlap=20)
    index = VectorStoreIndex.from_documents(documents, transformations=[splitter], embed_model=MockEmbedding(2))
    index.storage_context.persist(str(tmp_path / "persisted"))
    return tmp_path / "persisted"


def test_a_folder_of_llama_index(persisted):
    before = state(persisted)
    output = told(persisted, code=FINE)
    assert re.match(r"SimpleVectorStore: \d+ chunks from 2 sources; ", output)
    assert "kind 3, offset: span" in output
    assert told(persisted / "docstore.json", code=FINE) == output
    assert state(persisted) == before


def test_documents_of_a_pipeline_are_left_out_beside_nodes(tmp_path):
    document = LlamaDocument(text="One two three four. " * 200, metadata={"file_name": "a.txt"})
    docstore = SimpleDocumentStore()
    docstore.add_documents(
        [document, *SentenceSplitter(chunk_size=64, chunk_overlap=0).get_nodes_from_documents([document])]
    )
    docstore.persist(str(tmp_path / "docstore.json"))
    assert re.match(r"SimpleDocumentStore: \d+ chunks from 1 source; ", told(tmp_path, code=FINE))


def test_a_folder_of_llama_index_with_faiss(tmp_path):
    """FAISS writes its index in place of the vectors; the rows are in the file of the index structure."""
    nodes = [TextNode(text=piece, metadata={"file_name": "a.txt"}) for piece in PIECES]
    index = VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=3))
    rows = {str(row): node.node_id for row, node in enumerate(nodes[10:] + nodes[:7])}
    index.index_struct.nodes_dict = rows
    index.storage_context.index_store.add_index_struct(index.index_struct)
    index.storage_context.persist(tmp_path)
    (tmp_path / "default__vector_store.json").write_bytes(b"IxFI\x03\x00\x00\x00")
    output = told(tmp_path, code=PROBLEMS_FOUND)
    assert output.startswith(f"FaissVectorStore: {len(nodes) - 3} chunks from 1 source; problems in 1 source")
    assert "in the order in which they were added" in output


def test_a_folder_of_an_index_without_vectors(tmp_path):
    nodes = [TextNode(text=piece, metadata={"file_name": "a.txt"}) for piece in PIECES]
    SummaryIndex(nodes).storage_context.persist(tmp_path)
    assert f"{len(nodes)} chunks from 1 source; no problems found" in told(tmp_path, code=FINE)


def test_a_docstore_of_a_pipeline_has_no_chunks(tmp_path):
    docstore = SimpleDocumentStore()
    docstore.add_documents([LlamaDocument(text=TEXT, metadata={"file_name": "a.txt"})])
    docstore.persist(str(tmp_path / "docstore.json"))
    assert "check the vector store that the pipeline writes to" in told(tmp_path, code=INVALID_INPUT)


def test_a_docstore_of_llama_index_alone(persisted):
    (persisted / "default__vector_store.json").unlink()
    assert re.match(r"SimpleDocumentStore: \d+ chunks from 2 sources; ", told(persisted, code=FINE))


CHROMA = """
CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE segments (id TEXT PRIMARY KEY, type TEXT NOT NULL, scope TEXT NOT NULL, collection TEXT);
CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT NOT NULL, embedding_id TEXT NOT NULL, seq_id BLOB);
CREATE TABLE embedding_metadata (id INTEGER, key TEXT NOT NULL, string_value TEXT, int_value INTEGER, float_value REAL);
"""


def chroma(folder, **collections):
    """A folder as Chroma writes it; the first version had these tables."""
    folder.mkdir()
    number = 0
    connection = sqlite3.connect(folder / "chroma.sqlite3")
    connection.executescript(CHROMA)
    for name, documents in collections.items():
        connection.execute("INSERT INTO collections VALUES (?, ?)", [f"c-{name}", name])
        for scope in ("METADATA", "VECTOR"):
            connection.execute("INSERT INTO segments VALUES (?, '', ?, ?)", [f"{scope}-{name}", scope, f"c-{name}"])
        for row in documents:
            number += 1
            connection.execute("INSERT INTO embeddings VALUES (?, ?, ?, 0)", [number, f"METADATA-{name}", row["id"]])
            for key, value in {**row["metadata"], "chroma:document": row["text"]}.items():
                cells = [value if isinstance(value, kind) else None for kind in (str, int, float)]
                connection.execute("INSERT INTO embedding_metadata VALUES (?, ?, ?, ?, ?)", [number, key, *cells])
    connection.commit()
    connection.close()
    return folder


def test_a_folder_of_chroma(tmp_path):
    folder = chroma(tmp_path / "db", books=with_offsets())
    before = state(folder)
    output = told(folder, code=FINE)
    assert output.startswith(f"Chroma: {len(PIECES)} chunks from 1 source; no problems found\n")
    assert "kind 3, offset: start_index" in output
    assert told(folder / "chroma.sqlite3", code=FINE) == output
    assert state(folder) == before


def test_the_sequence_of_chroma_counts(tmp_path):
    assert "kind 6, insertion order: " in told(chroma(tmp_path / "db", books=rows()), code=FINE)
    torn = chroma(tmp_path / "torn", books=[*rows()[12:], *rows()[:9]])
    assert "in the order in which they were added" in told(torn, code=PROBLEMS_FOUND)


def test_one_of_several_collections_is_named(tmp_path):
    folder = chroma(tmp_path / "db", books=with_offsets(), films=rows("film.txt", page=1))
    assert f"{folder} does not have exactly one collection; choose with --collection: books, films" in told(
        folder, code=INVALID_INPUT
    )
    assert "has no collection 'songs'; choose one of books, films" in told(
        folder, "--collection", "songs", code=INVALID_INPUT
    )
    assert "film.txt" not in told(folder, "--collection", "books", code=FINE)
    assert "film.txt" in told(folder, "--collection", "films", code=FINE)


def test_nodes_of_llama_index_in_chroma(tmp_path, persisted):
    nodes = SentenceSplitter(chunk_size=128, chunk_overlap=20).get_nodes_from_documents(
        [LlamaDocument(text=TEXT, metadata={"file_name": "a.txt"})]
    )
    documents = [
        {"id": node.node_id, "text": node.get_content(), "metadata": node_to_metadata_dict(node, remove_text=True)}
        for node in nodes
    ]
    assert "kind 3, offset: span" in told(chroma(tmp_path / "db", nodes=documents), code=FINE)


def test_other_folders_are_refused(tmp_path):
    assert "is not a Chroma, LanceDB or LlamaIndex folder" in told(tmp_path, code=INVALID_INPUT)
    (tmp_path / "index.faiss").touch()
    (tmp_path / "index.pkl").touch()
    message = told(tmp_path, code=INVALID_INPUT)
    assert "pickle" in message
    assert "check_positions(FAISS.load_local(folder, embeddings, allow_dangerous_deserialization=True))" in message
    path = tmp_path / "index.pkl"
    path.write_bytes(b"\x80\x05.")
    assert "is a pickle; it was not read, because loading a pickle can run code" in told(path, code=INVALID_INPUT)


def test_what_is_not_installed_is_named(tmp_path, monkeypatch):
    (tmp_path / "table.lance").mkdir()
    monkeypatch.setitem(sys.modules, "lancedb", None)
    assert "pip install lancedb" in told(tmp_path, code=INVALID_INPUT)


# Options.


def test_json_has_a_check_for_each_path(tmp_path):
    fine, amiss = write(tmp_path / "fine.jsonl", with_offsets()), write(tmp_path / "amiss.jsonl", rows())
    checks = json.loads(told(fine, amiss, "--json", code=PROBLEMS_FOUND))["checks"]
    assert [(check["path"], check["ok"]) for check in checks] == [(str(fine), True), (str(amiss), False)]
    assert checks[1]["sources"][0]["kind"] == "none"
    output = told(fine, amiss, code=PROBLEMS_FOUND)
    assert f"── {fine}\n" in output
    assert f"── {amiss}\n" in output


def test_texts_of_the_sources(tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "book.txt").write_text(TEXT, encoding="utf-8")
    path = write(tmp_path / "docs.jsonl", rows())
    assert "kind 3, offset: text of the source" in told(path, "--read-source", texts, code=FINE)
    (texts / "book.txt").unlink()
    assert "the text of 1 source cannot be read, such as 'book.txt'" in told(
        path, "--read-source", texts, code=PROBLEMS_FOUND
    )
    assert "read_source must be an existing folder" in told(path, "--read-source", texts / "none", code=INVALID_INPUT)


def test_a_sample(tmp_path):
    path = write(tmp_path / "docs.jsonl", [*with_offsets("a.txt"), *with_offsets("b.txt")])
    output = told(path, "--max-chunks", len(PIECES) + 5, code=FINE)
    read = f"the first {len(PIECES)} chunks from 1 source"
    assert f"{read}, without b.txt, which was read only in part" in output
    assert "max-chunks" in told(path, "--max-chunks", 0, code=INVALID_INPUT)


def test_keys_of_metadata(tmp_path):
    documents = [{"text": text, "metadata": {"book": "b", "verse": n}} for n, text in enumerate("abc")]
    path = write(tmp_path / "docs.jsonl", documents)
    assert "do not name their source" in told(path, code=PROBLEMS_FOUND)
    assert "kind 0, position_key: verse" in told(
        path, "--source-key", "title,book", "--position-key", "verse", code=FINE
    )
    result = run(path, "--source-key", "bok")
    assert "Warning: source_key='bok': no chunk has this metadata key" in result.stderr


def test_a_collection_goes_with_a_store(tmp_path, persisted):
    for path in (write(tmp_path / "docs.jsonl", rows()), persisted):
        assert "--collection requires a Chroma or LanceDB folder" in told(path, "--collection", "a", code=INVALID_INPUT)


def test_a_collection_without_chunks(tmp_path):
    assert told(chroma(tmp_path / "db", empty=[]), code=FINE) == "Chroma: no chunks\n"
    assert told(write(tmp_path / "docs.jsonl", []), code=FINE) == "documents: no chunks\n"
    (found,) = json.loads(told(tmp_path / "docs.jsonl", "--json", code=FINE))["checks"]
    assert (found["ok"], found["chunks"], found["sources"]) == (True, 0, [])


def test_numbers_that_only_python_writes(tmp_path):
    path = write(tmp_path / "docs.jsonl", rows(score=math.nan))
    assert "NaN" in path.read_text()
    assert f" {len(PIECES)} chunks from " in told(path, code=PROBLEMS_FOUND)


# What others may have put there.


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "must be a JSON object"),
        ("no JSON", "line 1: invalid JSON"),
        ('{"text": 5}', "line 1: text or page_content must be a string, got 5"),
        ('{"metadata": {}}', "text or page_content must be a string, got None"),
        ('{"text": "a", "metadata": [1]}', "metadata must be an object, got [1]"),
        ("[" * 100_000, "recursion limit"),
        ("\udcff", "is not UTF-8"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, content, message):
    path = tmp_path / "docs.jsonl"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert message in told(path, code=INVALID_INPUT)


def test_a_path_that_leads_nowhere_is_refused(tmp_path):
    assert "No such file" in told(tmp_path / "none.jsonl", code=INVALID_INPUT)
    os.mkfifo(tmp_path / "pipe")
    assert "it is not a regular file" in told(tmp_path / "pipe", code=INVALID_INPUT)
    (tmp_path / "db").mkdir()
    os.mkfifo(tmp_path / "db" / "chroma.sqlite3")
    assert "is not a Chroma, " in told(tmp_path / "db", code=INVALID_INPUT)


@pytest.mark.parametrize("kind", ["chroma", "index", "llama_index"])
def test_damaged_files_are_refused_or_read(tmp_path, persisted, kind):
    chance = random.Random(3)
    index = tmp_path / "index.npz"
    DocumentIndex.from_texts({"book.txt": TEXT}, chunk_size=40).save(index)
    damaged, path = {
        "chroma": (chroma(tmp_path / "db", books=rows()) / "chroma.sqlite3", tmp_path / "db"),
        "index": (index, index),
        "llama_index": (persisted / "docstore.json", persisted),
    }[kind]
    whole = damaged.read_bytes()
    for number in range(40):
        data = bytearray(whole)
        for _ in range(1 + number):
            data[chance.randrange(len(data))] = chance.randrange(256)
        damaged.write_bytes(data[: chance.randrange(len(data))] if number % 4 == 0 else data)
        assert run(path).exit_code in (FINE, INVALID_INPUT, PROBLEMS_FOUND)


def test_a_database_of_something_else_is_refused(tmp_path):
    folder = tmp_path / "db"
    folder.mkdir()
    connection = sqlite3.connect(folder / "chroma.sqlite3")
    # A view could run for ever.
    connection.executescript(CHROMA.replace("CREATE TABLE embeddings (", "CREATE TABLE others ("))
    connection.execute("CREATE VIEW embeddings AS SELECT 1 AS id, '' AS segment_id, '' AS embedding_id")
    connection.close()
    assert "is not a Chroma database (0.4 or later)" in told(folder, code=INVALID_INPUT)


def test_a_terminal_obeys_no_text(tmp_path):
    documents = [{"text": text, "metadata": {"source": "\x1b[31mred\nline\u202e"}} for text in "ab"]
    path = write(tmp_path / "docs.jsonl", documents)
    output = told(path, code=PROBLEMS_FOUND)
    assert "\x1b" not in output
    assert "\u202e" not in output
    assert "\nline" not in output
    told_as_json = told(path, "--json", code=PROBLEMS_FOUND)
    assert "\x1b" not in told_as_json
    assert json.loads(told_as_json)["checks"][0]["ok"] is False
