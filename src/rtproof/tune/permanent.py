# SPDX-License-Identifier: Apache-2.0
"""The files that make a set of knobs permanent, for the tools that people have. rtproof itself applies none of them."""

import re
import shlex
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import NamedTuple

from rtproof.tune.knobs import KnobOnTarget

SYSCTL, RULES, SCRIPT, UNIT = "90-rtproof.conf", "90-rtproof.rules", "rtproof-tuned.sh", "rtproof-tuned.service"
BOOT, TUNED, BUILDROOT, YOCTO = "cmdline.txt", "tuned.conf", "buildroot.config", "rtproof-tuned.bb"
FOLDERS = {SYSCTL: "/etc/sysctl.d", RULES: "/etc/udev/rules.d", SCRIPT: "/usr/local/sbin", UNIT: "/etc/systemd/system"}


class Form(NamedTuple):
    """Settings of one form, and a line for each language that can say them; "" if it cannot.

    setting: a pattern of what --set takes, or of other words for the agent. The lines have its groups as placeholders.
    """

    setting: str
    shell: str = ""
    sysctl: str = ""
    udev: str = ""
    sysfs: str = ""


PUT, SYSFS = "put {value} {path}", "{path}={value}"
FORMS = (
    Form(r"/proc/sys/(?P<key>[^=]+)=(?P<value>.+)", sysctl="{key} = {value}"),
    Form(r"(?P<path>/[^=]+)=(?P<value>@.+)", PUT),
    Form(
        r"(?P<path>/sys/devices/system/(?P<bus>cpu)/(?P<folder>cpufreq)/policy\*/(?P<attribute>[^=*]+))=(?P<value>.+)",
        PUT,
        udev='ACTION=="add", SUBSYSTEM=="{bus}", ATTR{{{folder}/{attribute}}}="{value}"',
        sysfs=SYSFS,
    ),
    Form(
        r"(?P<path>/sys/(devices/system|bus|class/net/\*)/(?P<bus>cpu|machinecheck|pci|usb|queues)/(devices/)?"
        r"(?P<device>cpu\d+|cpu\[0-9\]\*|machinecheck\*|rx-\*|\*)/(?P<attribute>[^=*]+))=(?P<value>.+)",
        PUT,
        udev='ACTION=="add", SUBSYSTEM=="{bus}", KERNEL=="{device}", ATTR{{{attribute}}}="{value}"',
        sysfs=SYSFS,
    ),
    Form(r"(?P<path>/sys/(?!fs/)[^=]+)=(?P<value>.+)", PUT, sysfs=SYSFS),
    Form(r"(?P<path>/[^=]+)=(?P<value>.+)", PUT),
    Form(r"threads:(?P<name>.+):cpus=(?P<value>.+)", "threads '{name}' taskset -cp {value}"),
    Form(r"threads:(?P<name>.+):policy=(?P<policy>\w)\w+:(?P<value>\d+)", "threads '{name}' chrt -{policy} -p {value}"),
    Form(r"link:(?P<device>[^:]+):(?P<field>adaptive-[rt]x)=0", "links '{device}' {field} off"),
    Form(r"link:(?P<device>[^:]+):(?P<field>[^=]+)=(?P<value>.+)", "links '{device}' {field} {value}"),
    Form(r"controller:(?P<value>\w+)=on", "put +{value} /sys/fs/cgroup/cgroup.subtree_control"),
    Form(r"mkdir:(?P<path>.+)", "mkdir -p {path}"),
    Form(
        r"--timer-slack 1ns",
        "# Your application needs this, in its unit of systemd: TimerSlackNSec=1ns (prctl PR_SET_TIMERSLACK)",
    ),
    Form(
        r"join:(?P<path>.+)",
        "# Your application for these CPUs needs this before it starts: echo $$ > {path}/cgroup.procs",
    ),
)


def line_of(setting: str, language: str) -> str:
    """The line of a language for a setting as --set takes it; "" if the language has none."""
    for form in FORMS:
        if match := re.fullmatch(form.setting, setting):
            groups = {name: text or "" for name, text in match.groupdict().items()}
            groups["key"] = groups.get("key", "").replace("/", ".")
            if language == "shell" and "value" in groups:
                groups["value"] = shlex.quote(groups["value"])
            return str(getattr(form, language)).format(**groups)
    return ""


def permanent_files(kept: Sequence[KnobOnTarget]) -> dict[str, str]:
    """Their contents by name; none without a knob. Each file names the knobs that it does not have."""
    if not kept:
        return {}
    header = f"# Knobs that 'rtproof tune' found to help: {', '.join(each.knob.name for each in kept)}.\n"
    header += "# To go back, remove what you installed, and boot.\n"
    boot = " ".join(dict.fromkeys(word for each in kept for word in each.boot.split()))
    holds = any("--dma-latency" in each.knob.agent for each in kept)
    found: dict[str, str] = {}
    if lines := _lines(kept, "sysctl"):
        found[SYSCTL] = header + _lacking(kept, "sysctl") + lines
    if (lines := _lines(kept, "shell")) or holds:
        functions = resources.files("rtproof.tune").joinpath("permanent.sh").read_text()
        end = 'hold "$1"\n' if holds else ""
        found[SCRIPT] = f"#!/bin/sh\n{header}{_lacking(kept, 'shell')}{functions}{lines}{end}exit 0\n"
        found[UNIT] = header + _unit(holds=holds)
    if lines := _lines(kept, "udev"):
        found[RULES] = header + _lacking(kept, "udev") + lines
    if boot:
        add = "# Add these words to the boot loader's own.\n"
        found[BOOT] = f"{header}{add}{_lacking(kept, 'boot')}{boot}\n"
    found[TUNED] = header + _profile(kept, boot, holds=holds)
    placed = [name for name in FOLDERS if name in found]
    found[BUILDROOT], found[YOCTO] = header + _buildroot(placed, boot), header + _recipe(placed, boot)
    return found


def _lines(kept: Iterable[KnobOnTarget], language: str) -> str:
    """The lines of all knobs, each knob below its title."""
    found = ((one, [line for each in _all_of(one) if (line := line_of(each, language))]) for one in kept)
    return "".join(f"# {one.knob.title}\n" + "".join(f"{line}\n" for line in lines) for one, lines in found if lines)


def _all_of(one: KnobOnTarget) -> tuple[str, ...]:
    """Its settings, and its other words for the agent as one more."""
    return (*one.settings, " ".join(one.knob.agent))


def _lacking(kept: Iterable[KnobOnTarget], language: str) -> str:
    """A comment with the knobs that the language cannot say, or not all of them."""

    def said(one: KnobOnTarget) -> bool:
        if language == "boot":
            return bool(one.boot)
        if one.knob.agent:
            return language == "shell"
        return bool(one.settings) and all(line_of(each, language) for each in one.settings)

    lacking = ", ".join(one.knob.name for one in kept if not said(one))
    return f"# Not here, or only a part, so see the other files: {lacking}.\n" if lacking else ""


def _unit(*, holds: bool) -> str:
    kind, word = ("simple", " hold") if holds else ("oneshot\nRemainAfterExit=yes", "")
    return (
        "[Unit]\nDescription=Settings for real time\nAfter=network.target\n\n"
        f"[Service]\nType={kind}\nExecStart={FOLDERS[SCRIPT]}/{SCRIPT}{word}\n\n[Install]\nWantedBy=multi-user.target\n"
    )


def _profile(kept: Sequence[KnobOnTarget], boot: str, *, holds: bool) -> str:
    """A profile of tuned. Its folder must also have the script, for what no section sets."""
    script = any(line_of(each, "shell") and not line_of(each, "sysfs") for one in kept for each in one.settings)
    by_program = [line for one in kept for each in _all_of(one) if (line := line_of(each, "shell")).startswith("#")]
    sections = {
        "main": "summary=Settings that rtproof tune found to help\n" + "".join(f"{line}\n" for line in by_program),
        "sysctl": _lines(kept, "sysctl").replace(" = ", "="),
        "sysfs": _lines(kept, "sysfs"),
        "cpu": "force_latency=0\n" if holds else "",
        "bootloader": f"cmdline_rtproof=+{boot}\n" if boot else "",
        "script": f"script=${{i:PROFILE_DIR}}/{SCRIPT}\n" if script else "",
    }
    return "\n".join(f"[{name}]\n{text}" for name, text in sections.items() if text)


def _buildroot(placed: Sequence[str], boot: str) -> str:
    lines = [f"# For the boot loader: {boot}"] if boot else []
    if SCRIPT in placed:
        lines.append(f"# Without systemd, a script of /etc/init.d has the line: {FOLDERS[SCRIPT]}/{SCRIPT} hold &")
        needed = ("UTIL_LINUX", "UTIL_LINUX_SCHEDUTILS", "ETHTOOL")
        lines += [f"BR2_PACKAGE_{name}=y" for name in needed]
    if placed:
        lines += [f"# The overlay has {FOLDERS[name]}/{name}" for name in placed]
        lines += ["# Behind the folders that you have there already:", 'BR2_ROOTFS_OVERLAY="overlay"']
    return "".join(f"{line}\n" for line in lines)


def _recipe(placed: Sequence[str], boot: str) -> str:
    lines = [f"# For the boot loader, APPEND of the machine: {boot}"] if boot else []
    lines += ['SUMMARY = "Settings for real time"', 'LICENSE = "CLOSED"']
    # Older releases of Yocto have no UNPACKDIR: they unpack in WORKDIR.
    lines.append("S = \"${@d.getVar('UNPACKDIR') or d.getVar('WORKDIR')}\"")
    lines.append(f'SRC_URI = "{" ".join(f"file://{name}" for name in placed)}"')
    if UNIT in placed:
        lines += ["inherit systemd", f'SYSTEMD_SERVICE:${{PN}} = "{UNIT}"']
        lines.append('RDEPENDS:${PN} = "util-linux-chrt util-linux-taskset ethtool"')
    lines.append("do_install() {")
    for name in placed:
        mode = "0755" if name == SCRIPT else "0644"
        lines.append(f"\tinstall -D -m {mode} ${{S}}/{name} ${{D}}{FOLDERS[name]}/{name}")
    lines += ["}", f'FILES:${{PN}} += "{" ".join(FOLDERS[name] for name in placed)}"']
    return "".join(f"{line}\n" for line in lines)
