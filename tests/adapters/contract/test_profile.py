"""`from_profile` gives what the same keywords give, and loses nothing in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oprag.adapters.fields import METHOD_OPTIONS, OPTIONS
from oprag.errors import InputFileError, OptionError
from oprag.methods.profile import Profile, read_profile, write_profile
from tests.adapters.contract.surfaces import Surface, each_surface, each_that_answers, each_that_retrieves
from tests.adapters.scripted import STEPS

CONTEXT: dict[str, Any] = {
    "k": 2,
    "max_candidates": 3,
    "token_budget": 40,
    "count_tokens": "words",
    "order": "reverse_rank",
    "source_ranking": "score_sum",
    "position_key": ("chunk_index",),
    "redundancy_threshold": 0.999,
    "neighbors": 1,
    "min_chunks": 1,
    "stitch": True,
    "separator": " / ",
    "gap": "[...]",
    "header": "{source}: ",
}
METHOD: dict[str, Any] = {"method": "map_reduce", "passage_tokens": 8, "cite": True, "prompts": STEPS}


def written(folder: Path, context: dict[str, Any] = CONTEXT, method: dict[str, Any] | None = None) -> Path:
    write_profile(Profile(context=context, method=method or {}), folder / "oprag.toml")
    return folder / "oprag.toml"


def values(made: Any, names: tuple[str, ...] = OPTIONS) -> dict[str, Any]:
    return {name: getattr(made, name) for name in names}


@each_surface
def test_it_is_that_of_the_same_keywords(surface: Surface, tmp_path: Path):
    path = written(tmp_path)
    parts = surface.parts()
    same = surface.cls(**parts, **Profile(context=CONTEXT).context)
    for profile in (path, str(path), read_profile(path)):
        made = surface.cls.from_profile(profile, **parts)
        assert values(made) == values(same)
        assert surface.numbers(surface.use(made)) == surface.numbers(surface.use(same))
    assert values(made) != values(surface.make())


@each_that_answers
def test_its_method_too(surface: Surface, tmp_path: Path):
    parts = surface.parts()
    same = surface.cls(**parts, **Profile(context=CONTEXT).context, **METHOD)
    made = surface.cls.from_profile(written(tmp_path, method=METHOD), **parts)
    assert values(made, (*OPTIONS, *METHOD_OPTIONS)) == values(same, (*OPTIONS, *METHOD_OPTIONS))
    answers = [one.answer("What?") for one in (made, same)]
    assert answers[0].method == "map_reduce"
    assert [call.prompt for call in answers[0].calls] == [call.prompt for call in answers[1].calls]


@each_surface
def test_what_is_not_said_is_as_by_default_there(surface: Surface):
    made = surface.cls.from_profile(Profile(context={"order": "rank"}), **surface.parts())
    assert values(made) == values(surface.make(order="rank"))


@each_surface
def test_keywords_win_over_the_profile(surface: Surface, tmp_path: Path):
    path = written(tmp_path, {"k": 5, "order": "rank", "separator": " / ", "count_tokens": "words"})
    made = surface.cls.from_profile(path, **surface.parts(), k=2, count_tokens=len, order="source")
    assert (made.k, made.order, made.separator, made.count_tokens) == (2, "source", " / ", len)
    assert len(surface.numbers(surface.use(made))) == 2


@each_that_answers
def test_keywords_win_over_its_method(surface: Surface):
    made = surface.cls.from_profile(Profile(method=METHOD), **surface.parts(), method="stuff", cite=False)
    assert (made.method, made.cite, made.passage_tokens) == ("stuff", False, 8)


@each_that_retrieves
@pytest.mark.parametrize(
    "method", [{"method": "refine"}, {"method": "stuff", "cite": True}, {"prompts": {"instruction": "Be short."}}]
)
def test_a_method_is_not_lost_where_no_answers_are_made(surface: Surface, method: dict[str, Any]):
    profile = Profile(context={"k": 3}, method=method)
    with pytest.raises(
        OptionError,
        match=rf"{surface.cls.__name__} would ignore .*; remove it, or pass \*\*read_profile\(...\).context",
    ):
        surface.cls.from_profile(profile, **surface.parts())
    assert surface.cls(**profile.context, **surface.parts()).k == 3


@each_that_retrieves
def test_a_method_that_answers_as_without_it_is_no_obstacle(surface: Surface):
    method = {"method": "stuff", "passage_tokens": 1_024, "cite": False}
    assert surface.cls.from_profile(Profile(context={"k": 3}, method=method), **surface.parts()).k == 3


@each_that_answers
def test_text_that_was_not_stitched_is_not_stitched_in_silence(surface: Surface):
    profile = Profile(context={"stitch": False, "k": 3})
    with pytest.raises(OptionError, match=f"{surface.cls.__name__} would ignore stitch of the profile"):
        surface.cls.from_profile(profile, **surface.parts())
    assert surface.cls.from_profile(profile, **surface.parts(), stitch=False).stitch is False
    # Numbered passages are not stitched anyway.
    assert surface.cls.from_profile(profile, **surface.parts(), cite=True).k == 3


@each_that_retrieves
def test_chunks_that_were_not_stitched_come_back_as_they_are_asked_for(surface: Surface):
    assert surface.cls.from_profile(Profile(context={"stitch": False}), **surface.parts()).stitch is False


@each_surface
def test_a_profile_that_cannot_be_read_is_told(surface: Surface, tmp_path: Path):
    with pytest.raises(InputFileError, match="cannot read the profile"):
        surface.cls.from_profile(tmp_path / "none.toml")
    (tmp_path / "old.toml").write_text("format = 0")
    with pytest.raises(OptionError, match=r"^old\.toml: format: "):
        surface.cls.from_profile(tmp_path / "old.toml")
