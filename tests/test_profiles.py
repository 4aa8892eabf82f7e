# SPDX-License-Identifier: Apache-2.0

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rtproof import loads, profiles
from rtproof.core import units
from rtproof.core.errors import UserError
from rtproof.profiles import agent_arguments
from rtproof.profiles.profile import cell_as_run, with_loads, with_options, with_parameters, with_settings

H = 3_600_000_000_000
S = 1_000_000_000
SMALL = """
schema = 1
title = "A profile of our own"
article = "akamina"
about = "What it measures."
[options]
period = "2ms"
duration = "10s"
"""
AXIS = """
[[axis]]
name = "load"
[[axis.value]]
name = "idle"
[[axis.value]]
name = "some load"
options = { load = ["cpu"], probe_options = { a = "1" } }
"""


def written(folder: Path, text: str) -> str:
    file = folder / "own.toml"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize("name", profiles.names())
def test_a_profile_is_whole(name: str) -> None:
    profile = profiles.load(name)
    assert profile.name == name
    assert profile.differs
    keys = [cell.key for cell in profile.cells]
    assert len(set(keys)) == len(keys)
    for cell in profile.cells:
        assert cell.length_ns == cell.article_ns > 0
        assert cell.article_rows
        assert cell.label
        assert all("/" not in part for part in cell.key)
        assert "--period" in agent_arguments(cell)


@pytest.mark.parametrize("name", profiles.names())
def test_loads_of_guests_do_equal_work_on_every_kernel(name: str) -> None:
    """Those that do as much as the kernel lets them, and more on one kernel than twice that on another, have a rate."""
    guest = with_loads(profiles.load(name), profiles.load(name).guest.load)
    words = [word for cell in guest.cells for word in loads.resolve(cell.loads)]
    parts = [units.split_cpus(word)[0].partition(":") for word in words if not word.startswith("--")]
    rates = [re.findall(r"\brate=(\d+)", options) for load, _, options in parts if load in ("mmap", "sched", "lsr")]
    assert [rate for rate in rates if not rate or int(rate[0]) == 0] == []


def test_the_arguments_of_a_cell_are_the_article_s_conditions() -> None:
    cell = profiles.load("akamina").cell("loaded")
    assert agent_arguments(cell) == (
        *("--period", "10ms", "--threads", "1", "--policy", "fifo", "--priority", "99"),
        *("--probe", "kernel", "--method", "user", "--samples", "1500000", "--load", "comms"),
    )
    assert cell.article_ns == 15_000 * S


def test_each_way_has_arguments_of_its_own() -> None:
    cell = profiles.load("ten-ms").cell("fifo--stress")
    ways = {way.name: " ".join(agent_arguments(cell, way)) for way in cell.ways}
    assert list(ways) == ["kernel", "kernel without rtc", "cycle", "cycle without rtc"]
    assert "--probe kernel --method loop" in ways["kernel"]
    assert ways["kernel"].endswith("--load article2-stress:clock=rtc")
    assert ways["cycle without rtc"].endswith("--load article2-stress")
    assert "--probe cycle" in ways["cycle without rtc"]


def test_a_shortened_profile_keeps_the_article_s_length() -> None:
    profile = profiles.load("bootlin-timer").shortened(duration_ns=20 * S)
    assert {cell.length_ns for cell in profile.cells} == {20 * S}
    assert profile.cell("posix-timer").article_ns == 54 * H + 29 * 60 * S
    assert "--duration 20s" in " ".join(agent_arguments(profile.cells[0]))
    sampled = profiles.load("bootlin-timer").shortened(samples=7)
    assert "--samples 7" in " ".join(agent_arguments(sampled.cells[0]))


def test_axes_choose_cells() -> None:
    profile = with_settings(profiles.load("ten-ms"), {"policy": "fifo", "load": "stress"})
    assert [cell.key for cell in profile.cells] == ["fifo--stress"]
    assert [change.option for change in profile.changes] == ["policy", "load"]
    assert with_settings(profiles.load("ten-ms"), {"policy": "fifo,other"}).changes == ()


def test_parameters_have_to_be_given_and_reach_the_probe() -> None:
    gpio = profiles.load("bootlin-gpio")
    with pytest.raises(UserError, match=r"can't know chip, the .*: say --set chip=\.\.\. --set in=\.\.\. --set out"):
        with_parameters(gpio)
    given = with_parameters(with_settings(gpio, {"chip": "0", "in": "3", "out": "2"}))
    assert "--probe gpio:chip=0,in=3,out=2,edge=both" in " ".join(agent_arguments(given.cells[0]))


def test_a_parameter_that_the_user_gave_is_taken_in_every_way() -> None:
    own = profiles.load("simple-rt-app")
    named = with_parameters(with_settings(own, {"sensor": "/dev/zero"}))
    sensors = [["sensor=" in word for word in agent_arguments(own.cells[0], way)] for way in own.cells[0].ways]
    assert [any(each) for each in sensors] == [False, False, True, True]
    assert [way.name for way in named.cells[0].ways] == ["stress-ng", "without stress-ng"]
    assert all("sensor=/dev/zero" in " ".join(agent_arguments(named.cells[0], way)) for way in named.cells[0].ways)


def test_a_parameter_of_a_load_reaches_the_cells_that_have_it() -> None:
    own = profiles.load("ten-ms")
    named = with_parameters(with_settings(own, {"flood": "10.0.0.2"}))
    flooded = {cell.key: "pingflood:from=10.0.0.2" in cell.loads for cell in named.cells}
    assert flooded == {cell.key: "flood" in cell.key for cell in own.cells}
    assert with_parameters(own).cells == own.cells


def test_a_cell_is_labelled_by_the_load_that_ran() -> None:
    own = profiles.load("akamina")
    other = with_loads(own, ("mmap",))
    chosen = with_options(with_settings(own, {"load": "loaded"}), {"load": ()})
    assert [cell.label for cell in own.cells] == ["unloaded", "loaded (comms)"]
    assert [cell.label for cell in other.cells] == ["unloaded", "loaded (comms), here with mmap"]
    assert [cell.label for cell in chosen.cells] == ["loaded (comms), here with no load"]
    (app,) = profiles.load("simple-rt-app").cells
    ran = [cell_as_run(app, way).label for way in (None, *app.ways[:2])]
    assert ran == ["5 ms loop", "5 ms loop", "5 ms loop, here with cpu:workers=1"]
    bound = replace(app, options={**app.options, "load": ("stress-ng:workers=2@0,3",)})
    assert cell_as_run(bound, app.ways[-1]).label == "5 ms loop, here with cpu:workers=1@0,3"


def test_options_of_the_user_win_over_cells_and_ways() -> None:
    profile = with_options(profiles.load("bootlin-timer"), {"priority": 50, "load": ("cpu",), "duration": "3s"})
    for cell in profile.cells:
        assert "--priority 50 " in " ".join(agent_arguments(cell))
        assert agent_arguments(cell)[-2:] == ("--load", "cpu")
        assert cell.length_ns == 3 * S
    assert [(change.option, change.before, change.now) for change in profile.changes] == [
        ("priority", ("99",), "50"),
        ("load", ("doload",), "cpu"),
    ]


def test_a_profile_of_the_user_s_own(tmp_path: Path) -> None:
    profile = profiles.load(written(tmp_path, SMALL + AXIS))
    assert [cell.key for cell in profile.cells] == ["idle", "some-load"]
    assert agent_arguments(profile.cells[1]) == (
        *("--period", "2ms", "--probe", "timer:a=1", "--duration", "10s", "--load", "cpu"),
    )
    assert profile.cells[0].ways[0].name == "only"
    alone = profiles.load(written(tmp_path, SMALL))
    assert [(cell.key, cell.label) for cell in alone.cells] == [("only", "A profile of our own")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("schema = ", "is not TOML: "),
        (SMALL + "colour = 1\n", "options: there is no key 'colour'"),
        (SMALL.replace('title = "A profile of our own"', ""), "the key 'title' is missing"),
        (SMALL.replace("schema = 1", "schema = 9"), "schema: it is 9, and this version knows 1 only"),
        (SMALL.replace('"2ms"', '"2 parsecs"'), "options.period: the duration '2 parsecs' has the unknown unit"),
        (SMALL.replace('"10s"', '"10"'), "options.duration: the duration '10' has no unit"),
        (SMALL + "samples = 7\n", "give one of duration and samples"),
        (SMALL + "[requirement]\nlimit='1ms'\nat_most='2/h'\n", "requirement.at_most: '2/h' is not a rate"),
        (SMALL + "[[bin]]\nname='x'\nwidth='0us'\ncount=3\n", r"bin\[0\].width: '0us' must be longer than 0"),
        (SMALL + "[[bin]]\nname='x'\nwidth='2us'\ncount=-3\n", r"bin\[0\]: count: Expected `int` >= 1"),
        (SMALL.replace('duration = "10s"', "samples = 0"), "options: samples: Expected `int` >= 1"),
        ("zooms = [200]\n" + SMALL, r"zooms\[0\]: Expected `float` < 100"),
        (SMALL + AXIS + "[[exclude]]\nload='all'\n", r"exclude\[0\]: there is no load = 'all' on any axis"),
        (SMALL + AXIS + "[[row]]\nwhen={moon='all'}\nkeys=['a']\n", r"row\[0\].when: there is no moon = 'all'"),
        (SMALL + AXIS + AXIS, "axis: 'load' stands twice"),
        (SMALL + AXIS + "[[axis.value]]\nname='idle'\n", "the axis load: 'idle' stands twice"),
        (SMALL + AXIS + "[[exclude]]\n", "its axes make 0 cells"),
        ("options = 3\n" + SMALL.partition("[options]")[0], "options: Expected `object`, got `int`"),
        (SMALL + "[[file]]\nname='../x'\nformat='bins'\n", "file: '../x' is no name of a file"),
        (SMALL + "[[file]]\nname='x'\nformat='bins'\n" * 2, "file: 'x' stands twice"),
        (SMALL + "[[bin]]\nname='x'\nwidth='2us'\ncount=3\nfile='.x'\n", "file: '.x' is no name of a file"),
    ],
)
def test_a_wrong_file_is_one_sentence_with_file_and_key(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=words) as caught:
        profiles.load(written(tmp_path, text))
    assert "own.toml" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not TOML"):
        profiles.load(str(file))
    file.write_bytes(b"#" * (2 << 20))
    with pytest.raises(UserError, match="larger than 1 MiB"):
        profiles.load(str(file))


def test_other_loads_go_to_the_cells_that_have_any_and_are_told(tmp_path: Path) -> None:
    own = profiles.load(written(tmp_path, SMALL + AXIS))
    changed = with_loads(own, ("mmap", "dd"))
    assert [cell.loads for cell in changed.cells] == [(), ("mmap", "dd")]
    assert [(change.before, change.now) for change in changed.changes] == [(("cpu",), "mmap dd")]
    assert with_loads(own, ()) == own
