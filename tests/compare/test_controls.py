from oprag.compare.controls import CONTROLS, kind_of
from oprag.methods.registry import method_names


def test_what_methods_read_and_write():
    assert {name for name in CONTROLS if kind_of(name).reads is None} == {"closed_book", "closed_book_likelihood"}
    assert {name for name in CONTROLS if kind_of(name).writes is None} == {"context_only"}
    likelihoods = {name for name in CONTROLS if kind_of(name).writes == "likelihood"}
    assert likelihoods == {"answer_likelihood", "closed_book_likelihood"}
    assert {name for name in method_names() if kind_of(name) != ("context", "answer")} == {"long_context"}


def test_a_method_of_the_users_own_reads_a_context_and_answers():
    assert kind_of("mine") == ("context", "answer")
