import gc

from oprag import Chunk
from oprag.compare.data.data_set import DataSet, Evidence, Question
from oprag.compare.plan import MemoryCache
from oprag.compare.providers.specs import EmbedderSpec
from oprag.compare.running.prepared import PreparedExperiment
from oprag.compare.running.retrieval import Index, Retrieval, VectorSource
from oprag.compare.running.run import run
from oprag.index.splitting import Split
from oprag.index.tokenizers import NamedTokenizer
from tests.compare import made_up_stores
from tests.compare.helpers import RecordingModel, Words, experiment, keepers, rows
from tests.helpers import prose, word_offsets

DOCUMENTS = {"a": prose(300, seed=1), "b": [prose(60, seed=2), "", prose(90, seed=3)], "c": ""}
QUESTIONS = ["amber basin cedar", "valley willow", "the yarrow of the ocean"]


EIGHT = Split("tokens", 8)
STORES = "mine", "index"


def made(split=EIGHT, keeper=None, words=None):
    source = VectorSource(words or Words(), keeper or MemoryCache())
    return Index(DOCUMENTS, split, NamedTokenizer("words", "words", len, word_offsets), source)


def test_own_stores_are_searched_for_each_depth_and_closed_after_use(tmp_path, monkeypatch):
    source = VectorSource(Words(), MemoryCache())
    words = NamedTokenizer("words", "words", len, word_offsets)
    index = Index(DOCUMENTS, EIGHT, words, source, stores={"mine": made_up_stores.plain})
    for depth in (2, 5):
        found, exact = (index.given(QUESTIONS[0], "dense", one, depth, with_vectors=False) for one in STORES)
        assert [chunk.text for chunk in found.chunks] == [chunk.text for chunk in exact.chunks]
        assert len(found.chunks) == depth
    monkeypatch.setattr("oprag.compare.running.retrieval._MAX_INDEXES", 1)
    monkeypatch.setattr(made_up_stores, "closed", [])
    grid = {"k": 2, "chunk_size": 32, "store": "mine", "method": "context_only"}
    own = experiment(None, grid=grid, stores={"mine": made_up_stores.cleaned}, data=keepers(documents=2, questions=1))
    assert run(own, tmp_path / "r.db").complete
    assert made_up_stores.closed == ["langchain"] * 2


def test_contexts_of_whole_rankings_do_not_pile_up(monkeypatch):
    """A token budget alone takes all chunks as candidates, for every question."""
    monkeypatch.setattr("oprag.compare.running.retrieval._MAX_CHUNKS", 3_000)
    asked = [Question(id=str(number), text=f"Where is amber{number}?", documents=("a",)) for number in range(30)]
    data = DataSet(name="corpus", documents={"a": prose(2_000)}, questions=asked)
    grid = {"token_budget": 200, "splitter": "words", "chunk_size": 4, "method": "context_only"}
    prepared, retrieval = retrieval_of(experiment(None, data=data, grid=grid))
    for item in prepared.items():
        (context,) = retrieval.contexts(item.cell, item.question, [item.question.text])
        assert len(context.kept) + len(context.dropped) == 500
    gc.collect()
    # 30 whole rankings, as they were found and as they were placed, would be 30,000.
    assert sum(isinstance(one, Chunk) for one in gc.get_objects()) < 10_000


def test_pages_and_offsets_lead_to_the_text():
    index = made()
    documents = {name: text if isinstance(text, str) else "\n\n".join(text) for name, text in DOCUMENTS.items()}
    assert {chunk.metadata.get("page") for chunk in index.chunks} == {None, 1, 3}
    for chunk, (name, start, end), tokens in zip(index.chunks, index.spans, index.tokens, strict=True):
        assert chunk.text == documents[name][start:end]
        assert tokens == len(chunk.text.split()) <= 8
    assert "".join(chunk.text for chunk in index.chunks if chunk.metadata["source"] == "a") == documents["a"]


def test_words_are_counted_in_the_unit_of_the_embedder():
    tokenizer = NamedTokenizer(
        "letters", "letters", len, lambda text: [(place, place + 1) for place in range(len(text))]
    )
    documents = {"a": "one two three four five six"}
    index = Index(documents, Split("words", 5), tokenizer, VectorSource(Words(), MemoryCache()))
    assert [chunk.text for chunk in index.chunks] == ["one two three four five ", "six"]
    assert index.tokens == [24, 3]


def retrieval_of(small):
    prepared = PreparedExperiment(small)
    return prepared, Retrieval(prepared, MemoryCache())


def test_several_documents_are_searched_together(tmp_path):
    data = keepers(documents=3, questions=2)
    both = [
        Question(
            id="both",
            text="Who is the keeper of the amber number 2?",
            documents=("book 2", "book 0"),
            answers=("Yarrow",),
            evidence=(next(one for one in data.questions if one.id == "2-0").evidence[0],),
        )
    ]
    data = DataSet(name="set", documents=data.documents, questions=both)
    grid = {"k": 30, "chunk_size": 32, "method": ["context_only", "long_context"], "source_ranking": "name"}
    model = RecordingModel()
    assert run(experiment(model, data=data, grid=grid), tmp_path / "r.db").complete
    found = rows(tmp_path / "r.db", "SELECT kept.value ->> 0 FROM answers, json_each(context ->> 0) AS kept")
    assert {*found} == {(0,), (1,)}
    assert 'evidence_coverage":1.0' in rows(tmp_path / "r.db", "SELECT scores FROM results")[0][0]
    (prompt,) = model.calls
    # In their natural order, not in that of the question.
    assert 0 < prompt.index(str(data.documents["book 0"])) < prompt.index(str(data.documents["book 2"]))


def test_evidence_on_a_page_is_found(tmp_path):
    pages = [prose(80, seed=5), "The keeper of the moon is Selene. " + prose(60, seed=6), prose(80, seed=7)]
    whole = "\n\n".join(pages)
    start = whole.index("The keeper of the moon")
    question = Question(
        id="1",
        text="Who is the keeper of the moon?",
        documents=("paged",),
        answers=("Selene",),
        evidence=(Evidence("paged", start, start + 33),),
    )
    data = DataSet(name="pages", documents={"paged": pages}, questions=[question])
    grid = {"k": 1, "splitter": "words", "chunk_size": 20, "search": "bm25", "method": ["context_only", "stuff"]}
    model = RecordingModel()
    assert run(experiment(model, data=data, grid=grid, metrics=["evidence_coverage"]), tmp_path / "r.db").complete
    assert rows(tmp_path / "r.db", "SELECT DISTINCT scores FROM results") == [('{"evidence_coverage":1.0}',)]
    assert "Selene" in model.calls[0]


def test_pages_without_text_and_questions_without_documents_are_no_obstacle(tmp_path):
    sources = [(), ("empty",), ("pages",), ("empty", "text"), ("empty", "pages")]
    asked = [
        Question(id=str(number), text=f"What {number}?", documents=names, answers=("words",))
        for number, names in enumerate(sources)
    ]
    data = DataSet(name="set", documents={"empty": "", "pages": ["", "  "], "text": "Some words."}, questions=asked)
    grid = {"k": 3, "method": ["stuff", "map_reduce", "long_context", "self_route"], "search": ["dense", "bm25"]}
    assert run(experiment(RecordingModel(), data=data, grid=grid), tmp_path / "r.db").complete
    found = rows(tmp_path / "r.db", "SELECT DISTINCT question_id FROM results WHERE calls = 0")
    assert {name for (name,) in found} >= {"0", "1"}


def test_an_embedder_that_is_not_asked_is_not_opened():
    grid = {"k": 3, "chunk_size": 32, "method": "closed_book"}
    spec = EmbedderSpec("nobody:never")
    assert not PreparedExperiment(experiment(RecordingModel(), grid=grid, embedders={"never": spec})).embedders
