# SPDX-License-Identifier: Apache-2.0
"""Setup lists of articles beside a system: what it has, what the check says, and where they differ."""

import gzip
import re
from pathlib import Path

import pytest
from audit_cases import REFUSED, made_facts

from rtproof.audit import presets
from rtproof.audit.check import Outcome
from rtproof.audit.check_file import all_checks
from rtproof.audit.setup_list import PresetFile, PresetResult, judge_preset, read_preset
from rtproof.cli.main import main
from rtproof.core.toml import parse_toml
from rtproof.report.pages import audit_page
from rtproof.report.text_table import SCREEN_WIDTH

FACTS = Path(__file__).parent / "data" / "audit"

MADE = """
title = "The setup of a test"
article = "toradex"
purpose = "default"

[[setting]]
said = "Let only emergencies reach the console."
where = "Section 1"
asked = "printk = 1"
check = "con.printk"
read = ["/proc/sys/kernel/printk"]
good = "has ^1\\\\s"

[[setting]]
said = "Search rarely for threads that hang."
where = "Section 2"
asked = "hung_task_timeout_secs = 0"
check = "wd.hung"
today = "600 is enough."

[[setting]]
said = "Take a co-kernel."
where = "Section 3"
asked = "CONFIG_XENOMAI=y"
read = ["config:XENOMAI"]
good = "is y"
"""
PRINTK, HUNG, CONFIG = "/proc/sys/kernel/printk", "/proc/sys/kernel/hung_task_timeout_secs", "/boot/config-6.12.0"


def beside(files: dict[str, str | int]) -> PresetResult:
    return judge_preset(made_facts(files), parse_toml(MADE.encode(), PresetFile, "made.toml"))


def test_a_system_that_has_all_of_it() -> None:
    config = "# Linux/arm 6.12.0 Kernel Configuration\nCONFIG_XENOMAI=y\n"
    found = beside({PRINTK: "1 4 1 7\n", HUNG: "0\n", CONFIG: config})
    assert [one.outcome for one in found.settings] == [Outcome.GOOD] * 3
    assert found.settings[0].has == f"{PRINTK}: 1 4 1 7"
    assert [one.differs for one in found.settings] == [(), ("600 is enough.",), ()]


def test_a_check_that_is_content_without_it_differs_from_the_article() -> None:
    consoles = "tty0                 -WU (EC p  )    4:1\n"
    printk, hung, xenomai = beside({PRINTK: "7 4 1 7\n", HUNG: "120\n", "/proc/consoles": consoles}).settings
    assert printk.outcome is Outcome.FINDING
    assert printk.differs == ("con.printk is content without it: No console is a serial line that prints with "
                              "interrupts off.",)  # fmt: skip
    assert hung.outcome is Outcome.FINDING
    assert hung.differs == ("600 is enough.",)
    assert (xenomai.outcome, xenomai.check) == (Outcome.UNKNOWN, None)


@pytest.mark.parametrize("name", presets.preset_names())
@pytest.mark.parametrize("facts", ["debian-6.1", "sound-6.12-rt", "container"])
def test_audit_and_setup_list_fit_on_the_screen_of_an_audit(
    facts: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "facts.rtrec"
    file.write_bytes(gzip.decompress((FACTS / f"{facts}.rtrec.gz").read_bytes()))
    main(["audit", str(file), "--for", name])
    short = capsys.readouterr().out
    assert len(short.splitlines()) <= audit_page.SCREEN
    assert max(map(len, short.splitlines())) <= SCREEN_WIDTH
    main(["audit", str(file), "--for", name, "--all"])
    whole = " ".join(capsys.readouterr().out.split())
    assert "--all explains each setting" in short
    for setting in read_preset(name).setting:
        assert setting.asked in " ".join(short.split())
        assert setting.said in whole
    counted = re.findall(r"(?m)^(?:no|yes|not known|does not apply|contradicts itself) \((\d+)\): ", short)
    assert sum(map(int, counted)) == len(read_preset(name).setting)


def test_what_is_not_known_is_never_as_in_the_article() -> None:
    assert [one.outcome for one in beside({PRINTK: REFUSED, HUNG: REFUSED}).settings] == [Outcome.UNKNOWN] * 3


@pytest.mark.parametrize("name", presets.preset_names())
def test_the_lists_of_articles_make_sense(name: str) -> None:
    preset = read_preset(name)
    assert preset.purpose in presets.PURPOSES
    assert len(preset.setting) >= 10
    assert {setting.check for setting in preset.setting} - {""} <= {check.id for check in all_checks()}
    for setting in preset.setting:
        assert setting.check or setting.good
        assert bool(setting.good) == bool(setting.read)
        assert setting.said.endswith(".")
        assert setting.where


@pytest.mark.parametrize("name", presets.preset_names())
def test_a_system_that_tells_nothing_has_nothing_of_a_list(name: str) -> None:
    facts = made_facts({"/proc/cmdline": REFUSED}, kernel=("6.12.0", "#1 SMP"))
    found = judge_preset(facts, read_preset(name))
    assert not [one.setting.asked for one in found.settings if one.outcome is Outcome.GOOD]
