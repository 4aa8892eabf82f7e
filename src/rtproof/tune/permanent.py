# SPDX-License-Identifier: Apache-2.0
"""The files that make a set of knobs permanent, for the tools that people have. rtproof itself applies none of them."""

import shlex
from collections.abc import Mapping, Sequence

from rtproof.tune.knobs import KnobOnTarget

SYSCTL = "/proc/sys/"
HEADER = "# The knobs that 'rtproof tune' found to help: {names}.\n"


def permanent_files(kept: Sequence[KnobOnTarget]) -> dict[str, str]:
    """Their contents by name; none without a knob. A line that says what it cannot do stands in each file."""
    if not kept:
        return {}
    header = HEADER.format(names=", ".join(each.knob.name for each in kept))
    pairs = [tuple(each.split("=", 1)) for one in kept for each in one.settings if "=" in each]
    sysctls = {name.removeprefix(SYSCTL).replace("/", "."): said for name, said in pairs if name.startswith(SYSCTL)}
    others = [(name, said) for name, said in pairs if not name.startswith(SYSCTL)]
    commands = [line for name, said in others for line in _command(name, said)]
    groups = [each for one in kept for each in one.settings if "=" not in each]
    if any(one.knob.agent for one in kept):
        commands.append("exec 3> /dev/cpu_dma_latency; printf '\\0\\0\\0\\0' >&3; exec sleep infinity")
    boot = " ".join(one.boot for one in kept if one.boot)
    without_boot = [one.knob.name for one in kept if not one.boot]
    script = "".join(
        f"{line}\n" for line in (*(f"mkdir -p {_path(each)}" for each in groups if "mkdir:" in each), *commands)
    )
    found: dict[str, str] = {}
    if sysctls:
        found["90-rtproof.conf"] = header + "".join(f"{name} = {said}\n" for name, said in sysctls.items())
    if script:
        found["rtproof-tuned.sh"] = f"#!/bin/sh\n{header}{script}"
        found["rtproof-tuned.service"] = _unit(header, holds=any(one.knob.agent for one in kept))
    if rules := _udev_rules(others):
        found["90-rtproof.rules"] = header + rules
    if boot:
        lacking = f"# Not on a command line: {', '.join(without_boot)}.\n" if without_boot else ""
        found["cmdline.txt"] = f"{header}{lacking}{boot}\n"
    found["tuned.conf"] = _tuned_profile(header, sysctls, others, boot)
    found["buildroot.txt"] = _embedded(header, found, "Buildroot: an overlay (BR2_ROOTFS_OVERLAY) with these files")
    found["yocto.txt"] = _embedded(header, found, "Yocto: a recipe that installs these files")
    return found


def _path(setting: str) -> str:
    return shlex.quote(setting.partition(":")[2])


def _command(name: str, said: str) -> list[str]:
    """A shell's lines for a setting that is no sysctl. What no shell can do is a comment."""
    kind, _, rest = name.partition(":")
    if name.startswith("/") and said.startswith("@"):
        return [f'for f in {name}; do cat "${{f%/*}}/{said[1:]}" > "$f"; done']
    if name.startswith("/"):
        return [f'for f in {name}; do [ -e "$f" ] && echo {shlex.quote(said)} > "$f"; done']
    if kind == "threads":
        pattern, _, what = rest.rpartition(":")
        policy, _, priority = said.partition(":")
        flags = {"fifo": "-f", "rr": "-r", "other": "-o"}
        change = f"taskset -cp {said}" if what == "cpus" else f"chrt {flags[policy]} -p {priority or 0}"
        return [
            f'for t in /proc/[0-9]*/task/[0-9]*; do case "$(cat $t/comm 2>/dev/null)" in {pattern}) '
            f"{change} ${{t##*/}} > /dev/null 2>&1;; esac; done"
        ]
    if kind == "link":
        device, _, field = rest.partition(":")
        return [f"for d in /sys/class/net/{device}; do ethtool -C ${{d##*/}} {field} {said} 2> /dev/null; done"]
    if kind == "controller":
        return [f"echo +{rest} > /sys/fs/cgroup/cgroup.subtree_control"]
    return [f"# {name}={said}: no command does this"]


def _unit(header: str, *, holds: bool) -> str:
    kind = "Type=exec" if holds else "Type=oneshot\nRemainAfterExit=yes"
    return (
        f"{header}[Unit]\nDescription=Settings for real time\nAfter=sysinit.target\n\n"
        f"[Service]\n{kind}\nExecStart=/usr/local/sbin/rtproof-tuned.sh\n\n[Install]\nWantedBy=multi-user.target\n"
    )


def _udev_rules(others: Sequence[tuple[str, ...]]) -> str:
    """Rules for what comes and goes: CPUs, network devices, PCI and USB devices."""
    lines = []
    for name, said in others:
        if said.startswith("@"):
            continue
        if name.startswith("/sys/devices/system/cpu/cpu[0-9]*/"):
            lines.append(f'ACTION=="add", SUBSYSTEM=="cpu", ATTR{{{name.split("/", 6)[6]}}}="{said}"')
        elif name.startswith(("/sys/bus/pci/devices/*/", "/sys/bus/usb/devices/*/")):
            bus, rest = name.split("/")[3], name.split("/", 6)[6]
            lines.append(f'ACTION=="add", SUBSYSTEM=="{bus}", ATTR{{{rest}}}="{said}"')
        elif name.startswith("/sys/class/net/*/queues/"):
            lines.append(f'ACTION=="add", SUBSYSTEM=="queues", ATTR{{{name.rsplit("/", 1)[1]}}}="{said}"')
    return "".join(f"{line}\n" for line in lines)


def _tuned_profile(header: str, sysctls: Mapping[str, str], others: Sequence[tuple[str, ...]], boot: str) -> str:
    sysfs = [(name, said) for name, said in others if name.startswith("/") and not said.startswith("@")]
    parts = [
        "[main]\nsummary=What rtproof tune found to help\n",
        "".join(["[sysctl]\n", *(f"{name}={said}\n" for name, said in sysctls.items())]) if sysctls else "",
        "".join(["[sysfs]\n", *(f"{name}={said}\n" for name, said in sysfs)]) if sysfs else "",
        f"[bootloader]\ncmdline_rtproof={boot}\n" if boot else "",
        "[script]\nscript=${i:PROFILE_DIR}/rtproof-tuned.sh\n" if len(sysfs) < len(others) else "",
    ]
    return header + "\n".join(part for part in parts if part)


PLACES = {
    "90-rtproof.conf": "/etc/sysctl.d",
    "rtproof-tuned.sh": "/usr/local/sbin",
    "rtproof-tuned.service": "/etc/systemd/system",
    "90-rtproof.rules": "/etc/udev/rules.d",
}


def _embedded(header: str, files: Mapping[str, str], how: str) -> str:
    lines = [f"{PLACES[name]}/{name}\n" for name in files if name in PLACES]
    words = (
        "cmdline.txt has words for the kernel's command line of the boot loader.\n" if "cmdline.txt" in files else ""
    )
    return f"{header}# {how}.\n{''.join(lines)}{words}"
