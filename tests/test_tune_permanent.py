# SPDX-License-Identifier: Apache-2.0
"""The files that make knobs permanent: each is read back by the rules of its tool and compared with what was meant."""

import configparser
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.tune.knobs import Knob, KnobOnTarget, TunedCpus, all_knobs, for_cpus, settings_of
from rtproof.tune.permanent import BOOT, BUILDROOT, FOLDERS, RULES, SCRIPT, SYSCTL, TUNED, UNIT, YOCTO, permanent_files

CPUS = TunedCpus((2, 3), (0, 1), (1,))
FEW = 30
TELLING = """\
set -f
say() { printf '%s\\0' "$@"; printf '\\n'; }
put() { say put "$@"; }
threads() { say threads "$@"; }
links() { say links "$@"; }
mkdir() { say mkdir "$@"; }
hold() { say hold; }
"""
"""The functions of the script, which only tell what they would do."""


def on_target(knob: Knob) -> KnobOnTarget:
    return KnobOnTarget(knob, settings_of(knob, CPUS), for_cpus(knob.boot, CPUS))


ALL = tuple(map(on_target, all_knobs()))
some_knobs = st.lists(st.sampled_from(ALL), min_size=1, unique_by=lambda one: one.knob.name)


def pairs(kept: Sequence[KnobOnTarget]) -> list[tuple[str, str]]:
    split = (each.partition("=") for one in kept for each in one.settings)
    return [(name, value) for name, _, value in split]


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def sysctls(text: str) -> list[tuple[str, str]]:
    """As sysctl.d(5) has it: a name with dots, an equals sign, a value."""
    split = [line.split("=") for line in lines(text)]
    return [("/proc/sys/" + name.strip().replace(".", "/"), value.strip()) for name, value in split]


def ini(text: str, comments: Sequence[str] = ()) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(delimiters="=", inline_comment_prefixes=comments, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    return parser


def told(script: str) -> list[list[str]]:
    """What the script does, as words."""
    functions, body = script.split("} 3> /dev/cpu_dma_latency\n}\n")
    assert functions.startswith("#!/bin/sh\n")
    ran = subprocess.run(["sh", "-ec", TELLING + body], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
    return [line.split("\0")[:-1] for line in ran.stdout.splitlines()]


def meant(name: str, value: str) -> list[str]:
    """The words for a setting that is not in a file of sysctl.d."""
    kind, _, rest = name.partition(":")
    if kind == "threads":
        pattern, _, what = rest.rpartition(":")
        change = ["taskset", "-cp", value] if what == "cpus" else ["chrt", "-f", "-p", value.removeprefix("fifo:")]
        return ["threads", pattern, *change]
    if kind == "link":
        device, field = rest.split(":")
        return ["links", device, field, "off" if field == "adaptive-rx" else value]
    if kind == "controller":
        return ["put", "+cpuset", "/sys/fs/cgroup/cgroup.subtree_control"]
    return ["mkdir", "-p", rest] if kind == "mkdir" else ["put", value, name]


@given(some_knobs)
@settings(max_examples=FEW, deadline=None)
def test_sysctl_and_script_have_each_setting_once(kept: list[KnobOnTarget]) -> None:
    files = permanent_files(kept)
    wanted = [pair for pair in pairs(kept) if not pair[0].startswith("join:")]
    assert sysctls(files.get(SYSCTL, "")) == [pair for pair in wanted if pair[0].startswith("/proc/sys/")]
    others = [meant(*pair) for pair in wanted if not pair[0].startswith("/proc/sys/")]
    others += [["hold"]] if any("--dma-latency" in one.knob.agent for one in kept) else []
    assert (told(files[SCRIPT]) if SCRIPT in files else []) == others


@given(some_knobs)
@settings(max_examples=FEW, deadline=None)
def test_a_profile_of_tuned_has_each_setting_or_calls_the_script(kept: list[KnobOnTarget]) -> None:
    """tuned reads it so: ConfigParser(delimiters="=", inline_comment_prefixes="#"), names as they are written."""
    files = permanent_files(kept)
    found = ini(files[TUNED], "#")
    values = {name: dict(found[name]) for name in found.sections()}
    assert set(values) <= {"main", "sysctl", "sysfs", "cpu", "bootloader", "script"}
    wanted = dict(pairs(kept))
    said = {"/proc/sys/" + name.replace(".", "/"): value for name, value in values.get("sysctl", {}).items()}
    said |= values.get("sysfs", {})
    assert said.items() <= wanted.items()
    if rest := set(wanted) - set(said):
        assert not any(name.startswith("/proc/sys/") for name in rest)
        assert values.get("script") or all(name.startswith("join:") for name in rest)
    assert ("script" in values) <= (SCRIPT in files)
    if any("--timer-slack" in one.knob.agent for one in kept):
        assert (
            "\n# Your application needs this, in its unit of systemd: TimerSlackNSec=1ns (prctl PR_SET_TIMERSLACK)\n"
            in files[TUNED]
        )
    holds = any("--dma-latency" in one.knob.agent for one in kept)
    assert values.get("cpu") == ({"force_latency": "0"} if holds else None)
    boot = values.get("bootloader", {}).get("cmdline_rtproof", "")
    assert boot == ("+" + lines(files[BOOT])[0] if BOOT in files else "")


@given(some_knobs)
@settings(max_examples=FEW, deadline=None)
def test_the_command_line_has_each_word_once(kept: list[KnobOnTarget]) -> None:
    words = " ".join(lines(permanent_files(kept).get(BOOT, ""))).split()
    assert sorted(words) == sorted({word for one in kept for word in one.boot.split()})


def test_rules_of_udev_write_what_was_meant_for_each_device() -> None:
    wanted = dict(pairs(ALL))
    found = lines(permanent_files(ALL)[RULES])
    assert len(found) >= 9
    for line in found:
        matches, attribute, value = re.fullmatch(
            r'(ACTION=="add"(?:, [A-Z]+=="[^"]+")+), ATTR\{([^}"*]+)\}="([^"]+)"', line
        ).groups()  # type: ignore[union-attr]
        keys = dict(re.findall(r'([A-Z]+)=="([^"]+)"', matches))
        assert set(keys) <= {"ACTION", "SUBSYSTEM", "KERNEL"}
        attribute = attribute.replace("cpufreq/", "cpufreq/policy*/")
        device = "" if "cpufreq" in attribute else "/" + keys["KERNEL"]
        (name,) = [name for name in wanted if name.endswith(f"{device}/{attribute}") and keys["SUBSYSTEM"] in name]
        assert wanted[name] == value


def test_a_file_names_each_knob_that_it_has_not() -> None:
    files = permanent_files(ALL)
    in_sysctl = {one.knob.name: [name.startswith("/proc/sys/") for name, _ in pairs([one])] for one in ALL}
    whole = {
        SYSCTL: {name for name, those in in_sysctl.items() if those and all(those)},
        SCRIPT: {
            one.knob.name for one in ALL if one.knob.agent or (one.settings and not any(in_sysctl[one.knob.name]))
        },
        BOOT: {one.knob.name for one in ALL if one.boot},
        RULES: {one.knob.name for one in ALL if one.settings and f"# {one.knob.title}\n" in files[RULES]},
    }
    for file, names in whole.items():
        (said,) = re.findall(r"^# Not here, or only a part, so see the other files: (.*)\.$", files[file], re.MULTILINE)
        assert {*said.split(", ")} == {one.knob.name for one in ALL} - names


def test_a_shell_can_read_the_script() -> None:
    script = permanent_files(ALL)[SCRIPT]
    assert subprocess.run(["sh", "-n"], input=script, capture_output=True, text=True, check=False).stderr == ""
    for word in ("stop", "verify"):
        ran = subprocess.run(["sh", "-s", word], input=script, capture_output=True, text=True, check=True)
        assert (ran.stdout, ran.stderr) == ("", "")


def test_systemd_can_read_the_unit(tmp_path: Path) -> None:
    for kept in (ALL, [one for one in ALL if not one.knob.agent]):
        text = permanent_files(kept)[UNIT]
        unit = ini(text)
        assert unit["Service"]["ExecStart"].split()[0] == f"{FOLDERS[SCRIPT]}/{SCRIPT}"
        assert unit["Service"]["ExecStart"].endswith(" hold") == (unit["Service"]["Type"] == "simple")
        if shutil.which("systemd-analyze"):
            (tmp_path / UNIT).write_text(text.replace(f"{FOLDERS[SCRIPT]}/{SCRIPT}", "/bin/true"))
            ran = subprocess.run(
                ["systemd-analyze", "verify", "--man=no", tmp_path / UNIT], capture_output=True, text=True, check=False
            )
            assert UNIT not in ran.stderr


@given(some_knobs)
@settings(max_examples=FEW, deadline=None)
def test_fragments_for_images_place_every_file(kept: list[KnobOnTarget]) -> None:
    files = permanent_files(kept)
    placed = [f"{FOLDERS[name]}/{name}" for name in FOLDERS if name in files]
    assert re.findall(r"^# The overlay has (/.*)", files[BUILDROOT], re.MULTILINE) == placed
    assert all(re.fullmatch(r'BR2_[A-Z_]+=(y|"overlay")', line) for line in lines(files[BUILDROOT]))
    assert re.findall(r"install -D -m 0\d+ \$\{S\}/(\S+) \$\{D\}(\S+)", files[YOCTO]) == [
        (name.rsplit("/", 1)[1], name) for name in placed
    ]
    assert re.findall(r"file://(\S+?)[ \"]", files[YOCTO]) == [name.rsplit("/", 1)[1] for name in placed]


def test_without_a_knob_there_is_no_file() -> None:
    assert permanent_files([]) == {}
