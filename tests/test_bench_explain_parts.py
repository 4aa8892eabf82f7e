# SPDX-License-Identifier: Apache-2.0
"""The caller of ``make bench-explain``, without a guest: what it measures and writes, and what a failure leaves."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import disturbed_guests
import explain as bench
import explain_matrix
import pytest
from explain_parts import Bound, Details, Figure, Items, Part, quantile

from rtproof.core.errors import TargetError, UserError


def part(values: Mapping[str, float | BaseException], long: str = "") -> Part:
    """A part whose items give these values, or fail with them. At most 10 is asked of each."""

    def measure(item: str) -> Details:
        value = values[item]
        if isinstance(value, BaseException):
            raise value
        return {"value": value}

    def figures(items: Items) -> Sequence[Figure]:
        return [Figure(name, "value", one["value"], "us", 3, Bound(most=10)) for name, one in items.items()]

    return Part("9: a part", lambda: list(values), measure, figures, lambda items: [f"rows: {len(items)}"], long)


Parts = Callable[..., Path]


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parts:
    """Puts these parts in the place of the real ones. Returns the file."""

    def put(**some: Part) -> Path:
        monkeypatch.setattr(bench, "PARTS", some)
        monkeypatch.setattr(bench, "PLACE", tmp_path / "build" / "bench.json")
        return tmp_path / "build" / "bench.json"

    return put


def read(place: Path) -> dict[str, Any]:
    return dict(json.loads(place.read_text()))


def test_each_part_has_its_key_with_figures_bounds_and_conditions(parts: Parts) -> None:
    place = parts(first=part({"one": 3.5, "two": 12}), second=part({"three": 1}))
    assert bench.main([]) == 1, "12 is more than 10"
    found = read(place)
    assert list(found) == ["first", "second"]
    assert found["first"]["figures"] == [
        {"of": "one", "words": "value", "value": 3.5, "unit": "us", "n": 3, "asked": "at most 10", "holds": True},
        {"of": "two", "words": "value", "value": 12, "unit": "us", "n": 3, "asked": "at most 10", "holds": False},
    ]
    assert found["first"]["holds"] is False
    assert found["second"]["holds"] is True
    assert found["first"]["asked"] == "9: a part"
    item = found["first"]["items"]["one"]
    assert item["details"] == {"value": 3.5}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", item["date"])
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?|unknown", item["commit"])
    assert {"kernel", "processor", "cpus", "load_average", "virtual"} <= item["machine"].keys()
    assert item["seconds"] >= 0


def test_long_parts_are_measured_only_by_name(parts: Parts, capsys: pytest.CaptureFixture[str]) -> None:
    place = parts(short=part({"one": 1}), long=part({"hour": 1}, long="it takes long"))
    assert bench.main([]) == 0
    assert "long: left out: it takes long; --parts long measures it" in capsys.readouterr().out
    found = read(place)
    assert (list(found["short"]["items"]), found["long"]["items"]) == (["one"], {})
    assert found["long"]["not_measured"] == "it takes long; --parts long measures it"
    assert bench.main(["--parts", "long"]) == 0
    measured = read(place)["long"]
    assert list(measured["items"]) == ["hour"]
    assert bench.main([]) == 0
    assert read(place)["long"] == measured
    with pytest.raises(SystemExit):
        bench.main(["--help"])
    assert "long is not among them: it takes long" in " ".join(capsys.readouterr().out.split())


def test_an_item_chooses_its_part_and_the_others_keep_what_they_have(parts: Parts) -> None:
    place = parts(first=part({"one": 1, "two": 2}), second=part({"three": 3}))
    assert bench.main([]) == 0
    before = read(place)
    parts(first=part({"one": 7, "two": 8}), second=part({"three": 9}))
    assert bench.main(["two"]) == 0
    after = read(place)
    assert after["second"] == before["second"]
    assert after["first"]["items"]["one"] == before["first"]["items"]["one"]
    assert [each["value"] for each in after["first"]["figures"]] == [1, 8]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--parts", ","], "--parts ',' has an empty name; there are: first, second"),
        (["--parts", "third"], "there is no part 'third'; there are: first, second"),
        (["four"], "there is no 'four' in first, second; there are: one, two, three"),
        (["--parts", "second", "one"], "there is no 'one' in second; there are: three"),
    ],
)
def test_unknown_names_are_refused(
    words: list[str], said: str, parts: Parts, capsys: pytest.CaptureFixture[str]
) -> None:
    place = parts(first=part({"one": 1, "two": 2}), second=part({"three": 3}))
    assert bench.main(words) == 2
    assert capsys.readouterr().err == f"{said}\n"
    assert not place.exists()


def test_what_cannot_run_says_why_and_leaves_the_others_alone(parts: Parts, capsys: pytest.CaptureFixture[str]) -> None:
    place = parts(
        first=part({"one": UserError("no guest here"), "two": OSError(2, "no file", "x"), "three": ValueError("a\nb")}),
        second=part({"four": 4, "five": SystemExit("ended")}),
    )
    assert bench.main([]) == 1
    found = read(place)
    reasons = {name: one["not_measured"] for name, one in found["first"]["items"].items()}
    assert reasons == {
        "one": "no guest here",
        "two": "FileNotFoundError: [Errno 2] no file: 'x'",
        "three": "ValueError: a b",
    }
    assert found["first"]["figures"] == []
    assert found["first"]["holds"] is False
    assert found["second"]["items"]["five"]["not_measured"] == "SystemExit: ended"
    assert [each["holds"] for each in found["second"]["figures"]] == [True]
    said = capsys.readouterr()
    assert "one: not measured: no guest here" in said.err
    assert said.err.count("Traceback") == 1, "a fault of the program is no refusal"


def test_a_part_that_cannot_tell_its_items_says_why(parts: Parts) -> None:
    def no_items() -> Sequence[str]:
        raise UserError("nothing here can build the agent")

    place = parts(first=replace(part({}), items=no_items), second=part({"two": 2}))
    assert bench.main([]) == 1
    assert read(place)["first"]["not_measured"] == "nothing here can build the agent"
    assert read(place)["second"]["holds"] is True
    assert bench.main(["two"]) == 0


def test_an_interrupted_run_keeps_what_was_done(parts: Parts, capsys: pytest.CaptureFixture[str]) -> None:
    place = parts(first=part({"one": 1, "two": KeyboardInterrupt(), "three": 3}), second=part({"four": 4}))
    assert bench.main([]) == 130
    assert "interrupted" in capsys.readouterr().err
    found = read(place)
    assert list(found["first"]["items"]) == ["one"]
    assert found["first"]["under_way"] == "two"
    assert [each["value"] for each in found["first"]["figures"]] == [1]
    parts(first=part({"one": 1, "two": 2, "three": 3}))
    assert bench.main(["two", "three"]) == 0
    found = read(place)
    assert list(found["first"]["items"]) == ["one", "two", "three"]
    assert "under_way" not in found["first"]


def test_a_file_that_is_none_is_told_and_written_anew(parts: Parts, capsys: pytest.CaptureFixture[str]) -> None:
    place = parts(first=part({"one": 1}))
    place.parent.mkdir()
    for text, said in (
        ("{", "cannot be read, and is written anew"),
        ("[]", "cannot be read, and is written anew"),
        ('{"systems": {"6.1-rt": {}}}', "'systems' is from another version"),
    ):
        place.write_text(text)
        assert bench.main([]) == 0
        assert said in capsys.readouterr().err
        assert list(read(place)) == ["first"]


def test_items_of_another_version_make_no_figures(parts: Parts) -> None:
    place = parts(first=part({"one": 1, "two": 2}))
    assert bench.main([]) == 0
    text = place.read_text().replace('"value": 1\n', '"worth": 1\n')
    assert "worth" in text
    place.write_text(text)
    assert bench.main(["two"]) == 1
    assert "different versions" in read(place)["first"]["no_figures"]
    assert bench.main([]) == 0
    assert "no_figures" not in read(place)["first"]


def test_the_real_parts_have_names_of_items_and_refuse_others(capsys: pytest.CaptureFixture[str]) -> None:
    assert [name for name, one in bench.PARTS.items() if one.long] == ["hour"]
    assert bench.main(["--parts", "matrix", "6.1-nine"]) == 2
    assert capsys.readouterr().err.startswith("there is no '6.1-nine' in matrix; there are: 6.1-none, 6.1-full")
    work = bench.chosen_work([], ["6.1-rt"])
    assert [(one.name, one.items) for one in work] == [("matrix", ("6.1-rt",))]
    assert len(bench.chosen_work(["matrix"], [])[0].items) == len(disturbed_guests.SYSTEMS)


def test_a_guest_that_fails_gives_its_sentence(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(system: disturbed_guests.System, _: Path) -> None:
        raise TargetError(f"no guest for {system.name}")

    monkeypatch.setattr(disturbed_guests, "measure", fails)
    place = parts(matrix=explain_matrix.PART)
    assert bench.main(["6.1-rt"]) == 1
    assert "6.1-rt: not measured: no guest for 6.1-rt" in capsys.readouterr().err
    assert read(place)["matrix"]["items"]["6.1-rt"]["not_measured"] == "no guest for 6.1-rt"


def test_bounds_and_quantiles() -> None:
    assert [str(bound) for bound in (Bound(1), Bound(most=2.5), Bound(1, 2), Bound(0, 0))] == [
        "at least 1", "at most 2.5", "at least 1 and at most 2", "0",
    ]  # fmt: skip
    assert [Bound(1, 2).holds(value) for value in (0.9, 1, 2, 2.1)] == [False, True, True, False]
    assert Figure("", "told", None, "us", 0).holds is None
    assert Figure("", "asked", None, "us", 0, Bound(1)).holds is False, "nothing measured is no success"
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile([], 0.5) is None
