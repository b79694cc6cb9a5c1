from oprag.compare.experiment_methods import CONTROLS, MethodKind, kind_of
from oprag.methods.registry import method_names


def test_what_methods_read_and_write():
    assert {name for name in CONTROLS if kind_of(name).reads is None} == {"closed_book"}
    assert {name for name in CONTROLS if not kind_of(name).writes} == {"context_only"}
    assert {name for name in method_names() if kind_of(name) != MethodKind("context", writes=True)} == {"long_context"}


def test_a_method_of_the_users_own_reads_a_context_and_answers():
    assert kind_of("mine") == MethodKind("context", writes=True)


def test_an_own_pipeline_reads_no_context_of_ours_and_answers():
    assert kind_of("pipeline:mine") == MethodKind(None, writes=True, own=True)
