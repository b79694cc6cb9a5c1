"""`from_profile` gives what the same keywords give, and loses nothing in silence."""

from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from pydantic import ValidationError

from oprag import InputFileError, OptionError
from oprag.langchain import OrderPreservingChain, OrderPreservingCompressor, OrderPreservingRetriever
from oprag.method_fields import METHOD_OPTIONS
from oprag.option_fields import OPTIONS
from oprag.profile import Profile, read_profile, write_profile
from tests.adapters.langchain.chain.conftest import STEPS, Model, by_step
from tests.adapters.langchain.conftest import QUESTION, giving, numbers_of, parts, store_of, texts

EMBEDDINGS = DeterministicFakeEmbedding(size=16)
ASSEMBLY: dict[str, Any] = {
    "k": 5,
    "max_candidates": 9,
    "token_budget": 40,
    "count_tokens": "words",
    "order": "reverse_rank",
    "source_ranking": "score_sum",
    "position_key": ("chunk_index",),
    "redundancy_threshold": 0.99,
    "min_chunks": 1,
    "stitch": True,
    "separator": " / ",
    "gap": "[...]",
    "header": "{source}: ",
}
METHOD: dict[str, Any] = {"method": "map_reduce", "passage_tokens": 8, "cite": True, "prompts": STEPS}


def saved(tmp_path: Any, **tables: Any) -> str:
    path = tmp_path / "oprag.toml"
    write_profile(Profile(**tables), path)
    return str(path)


def keywords(**changes: Any) -> dict[str, Any]:
    return Profile(context=ASSEMBLY | changes).as_context_options().__dict__ | {}


def options_of(surface: Any, names: tuple[str, ...] = OPTIONS) -> dict[str, Any]:
    return {name: getattr(surface, name) for name in names}


def test_a_retriever_over_a_store_is_that_of_the_same_keywords(tmp_path, store):
    path = saved(tmp_path, context=ASSEMBLY)
    given = keywords()
    made = OrderPreservingRetriever.from_profile(path, vectorstore=store)
    same = OrderPreservingRetriever(vectorstore=store, **given)
    assert options_of(made) == options_of(same)
    assert texts(made.invoke(QUESTION)) == texts(same.invoke(QUESTION))
    assert made.get_context(QUESTION).text == same.get_context(QUESTION).text
    assert numbers_of(made.invoke(QUESTION)) != numbers_of(OrderPreservingRetriever(vectorstore=store).invoke(QUESTION))


async def test_a_retriever_around_a_retriever_is_that_of_the_same_keywords(tmp_path, store):
    path = saved(tmp_path, context=ASSEMBLY)
    inner = store.as_retriever(search_kwargs={"k": 9})
    made = OrderPreservingRetriever.from_profile(path, retriever=inner)
    same = OrderPreservingRetriever(retriever=inner, **keywords())
    assert options_of(made) == options_of(same)
    assert texts(await made.ainvoke(QUESTION)) == texts(await same.ainvoke(QUESTION))


def test_a_compressor_is_that_of_the_same_keywords(tmp_path):
    path = saved(tmp_path, context=ASSEMBLY)
    made = OrderPreservingCompressor.from_profile(path, embeddings=EMBEDDINGS)
    same = OrderPreservingCompressor(embeddings=EMBEDDINGS, **keywords())
    assert options_of(made) == options_of(same)
    found = list(reversed(parts()))
    assert texts(made.compress_documents(found, QUESTION)) == texts(same.compress_documents(found, QUESTION))


@pytest.mark.parametrize("kind", ["store", "retriever"])
def test_a_chain_is_that_of_the_same_keywords(tmp_path, store, kind):
    path = saved(tmp_path, context=ASSEMBLY, method=METHOD)
    retriever = store if kind == "store" else store.as_retriever(search_kwargs={"k": 9})
    models = [Model(reply=by_step), Model(reply=by_step)]
    parts_ = {"retriever": retriever, "embeddings": EMBEDDINGS}
    made = OrderPreservingChain.from_profile(path, llm=models[0], **parts_)
    same = OrderPreservingChain(llm=models[1], **parts_, **keywords(), **METHOD)
    assert options_of(made, (*OPTIONS, *METHOD_OPTIONS)) == options_of(same, (*OPTIONS, *METHOD_OPTIONS))
    answers = [made.answer(QUESTION), same.answer(QUESTION)]
    assert answers[0].text == answers[1].text
    assert answers[0].method == "map_reduce"
    assert sorted(models[0].read) == sorted(models[1].read)
    assert len(models[0].read) > 2


def test_a_profile_that_was_read_serves_as_well(tmp_path, store):
    path = saved(tmp_path, context=ASSEMBLY)
    made = OrderPreservingRetriever.from_profile(read_profile(path), vectorstore=store)
    assert options_of(made) == options_of(OrderPreservingRetriever.from_profile(path, vectorstore=store))


def test_keywords_win_over_the_profile(tmp_path, store):
    path = saved(tmp_path, context={"k": 5, "order": "rank", "count_tokens": "huggingface:/no/such"}, method=METHOD)
    chain = OrderPreservingChain.from_profile(
        path, llm=Model(), retriever=store, k=2, count_tokens=len, method="stuff", cite=False
    )
    assert (chain.k, chain.order, chain.method, chain.cite) == (2, "rank", "stuff", False)
    assert chain.count_tokens is len
    answer = chain.answer(QUESTION)
    assert len(answer.contexts[0].kept) == 2
    compressor = OrderPreservingCompressor.from_profile(
        read_profile(path).without_method(), order="source", count_tokens=len, annotate=True
    )
    assert (compressor.k, compressor.order, compressor.annotate) == (5, "source", True)


def test_what_is_not_said_is_as_by_default_on_the_surface(store):
    made = OrderPreservingRetriever.from_profile(Profile(context={"order": "rank"}), vectorstore=store)
    assert options_of(made) == options_of(OrderPreservingRetriever(vectorstore=store, order="rank"))
    assert (made.k, made.token_budget) == (128, 16_384)


@pytest.mark.parametrize("chain", [False, True], ids=["retriever", "chain"])
def test_a_limit_that_there_is_not_stays_away_from_a_store_too(chain):
    store = store_of(parts(150))
    profile = Profile(context={"k": None, "max_candidates": 150, "token_budget": None})
    if chain:
        made = OrderPreservingChain.from_profile(profile, llm=Model(), retriever=store)
        assert len(made.answer(QUESTION).contexts[0].kept) == 150
        # Nor does a copy get one.
        assert len(made.model_copy(update={"method": "stuff"}).answer(QUESTION).contexts[0].kept) == 150
    else:
        assert len(OrderPreservingRetriever.from_profile(profile, vectorstore=store).invoke(QUESTION)) == 150


def test_a_store_needs_to_know_how_many_to_search_for(store):
    profile = Profile(context={"k": None, "token_budget": 20})
    with pytest.raises(ValidationError, match="k=None with vectorstore= needs max_candidates") as caught:
        OrderPreservingRetriever.from_profile(profile, vectorstore=store)
    assert caught.value.__notes__ == ["the profile gives k=None, token_budget=20"]
    with pytest.raises(ValidationError, match="k=None with vectorstore= needs max_candidates"):
        OrderPreservingChain.from_profile(profile, llm=Model(), retriever=store)
    assert OrderPreservingRetriever.from_profile(profile, vectorstore=store, max_candidates=12).invoke(QUESTION)


@pytest.mark.parametrize(
    "method",
    [{"method": "refine"}, {"method": "stuff", "cite": True}, {"prompts": {"instruction": "Be short."}}],
)
def test_a_method_is_not_lost_where_no_answers_are_made(store, method):
    profile = Profile(context={"k": 3}, method=method)
    for make in (
        lambda given: OrderPreservingRetriever.from_profile(given, vectorstore=store),
        lambda given: OrderPreservingRetriever.from_profile(given, retriever=giving(parts())),
        OrderPreservingCompressor.from_profile,
    ):
        with pytest.raises(OptionError, match=r"the profile says .* makes no answers, so that would be lost"):
            make(profile)
        assert make(profile.without_method()).k == 3


def test_a_method_that_answers_as_without_it_is_no_obstacle(tmp_path, store):
    method = {"method": "stuff", "passage_tokens": 1_024, "max_concurrency": 2, "cite": False}
    path = saved(tmp_path, context={"k": 3}, method=method)
    assert OrderPreservingRetriever.from_profile(path, vectorstore=store).k == 3


def test_a_retriever_with_options_of_its_own_must_have_those_of_the_profile(tmp_path, store):
    path = saved(tmp_path, context=ASSEMBLY, method={"method": "refine", "prompts": STEPS})
    model = Model(reply=by_step)
    retrieval = read_profile(path).without_method()
    same = OrderPreservingRetriever.from_profile(retrieval, vectorstore=store, search_kwargs={"filter": None})
    chain = OrderPreservingChain.from_profile(path, llm=model, retriever=same)
    assert chain.answer(QUESTION).method == "refine"
    assert len(chain.answer(QUESTION).contexts[0].kept) == len(same.get_context(QUESTION).kept)

    other = OrderPreservingRetriever.from_profile(retrieval, vectorstore=store, k=4, order="source")
    with pytest.raises(
        OptionError, match=r"with options of its own, and .*oprag.toml says k=5, order='reverse_rank'; make"
    ):
        OrderPreservingChain.from_profile(path, llm=model, retriever=other)
    # An option that is given to the chain is refused as ever.
    with pytest.raises(ValidationError, match="options of its own; set k there"):
        OrderPreservingChain.from_profile(path, llm=model, retriever=same, k=4)


def test_text_that_was_not_stitched_is_not_stitched_in_silence(tmp_path, store):
    path = saved(tmp_path, context={"stitch": False, "k": 3})
    with pytest.raises(
        OptionError, match="stitch = false, and OrderPreservingChain always stitches what the model reads"
    ):
        OrderPreservingChain.from_profile(path, llm=Model(), retriever=store)
    assert OrderPreservingChain.from_profile(path, llm=Model(), retriever=store, stitch=False).k == 3
    # Numbered passages are not stitched anyway, and documents of a retriever are as it is asked for them.
    assert OrderPreservingChain.from_profile(path, llm=Model(), retriever=store, cite=True).k == 3
    assert OrderPreservingRetriever.from_profile(path, vectorstore=store).k == 3


def test_what_the_constructor_refuses_is_refused_with_a_note_of_the_profile(tmp_path, store):
    path = saved(tmp_path, context={"k": 8}, method={"method": "reciprocl"})
    with pytest.raises(ValidationError, match="unknown method 'reciprocl'") as caught:
        OrderPreservingChain.from_profile(path, llm=Model(), retriever=store)
    assert caught.value.__notes__ == [f"{path} gives k=8, method='reciprocl'"]
    with pytest.raises(ValidationError, match="max_candidates must be at least k, got max_candidates=3 and k=8"):
        OrderPreservingChain.from_profile(path, llm=Model(), retriever=store, max_candidates=3)
    with pytest.raises(ValidationError, match="give either retriever= or vectorstore="):
        OrderPreservingRetriever.from_profile(read_profile(path).without_method())
    with pytest.raises(ValidationError, match="kk"):
        OrderPreservingRetriever.from_profile(Profile(), vectorstore=store, kk=3)
    with pytest.raises(ValidationError, match="thresholds need vectors"):
        OrderPreservingCompressor.from_profile(Profile(context={"similarity_threshold": 0.5}))


@pytest.mark.parametrize("kind", [OrderPreservingRetriever, OrderPreservingCompressor, OrderPreservingChain])
def test_a_profile_that_cannot_be_read_is_told(tmp_path, kind):
    with pytest.raises(InputFileError, match="cannot read the profile"):
        kind.from_profile(tmp_path / "none.toml")
    with pytest.raises(OptionError, match="expected the path of a profile, got None"):
        kind.from_profile(None)
    (tmp_path / "old.toml").write_text("format = 0")
    with pytest.raises(OptionError, match=r"^old\.toml: .* got 0"):
        kind.from_profile(tmp_path / "old.toml")
