# SPDX-License-Identifier: Apache-2.0
"""Conditions under which a check applies, by the name that ``needs`` of a check gives.

Each answers whether it holds, and in a sentence why not, or why nobody knows.
"""

import re
from collections.abc import Callable

from rtproof.audit.boot_words import boot_words
from rtproof.audit.facts import NOHZ_FULL, ONLINE, Facts, Reading, State, kernel_version
from rtproof.audit.system_tables import container_marks, in_container
from rtproof.core.printable import clean
from rtproof.summary import measured_kernel, system_facts

LOCKED_DOWN = re.compile(r"Lockdown:|Kernel is locked down")
"""What the log has of a kernel in which even root can't write every file."""
SEVERAL_CPUS, MANY_CPUS = 2, 8
"""Of many, ticks that come at one moment wait for each other's locks."""


Holds = tuple[bool | None, str]
"""Whether a condition holds, None if nobody knows; and why it does not hold, or is not known."""


def _real_time_kernel(facts: Facts) -> Holds:
    built = facts.preemption.built.value
    if built is None:
        return None, "It is not known whether the kernel is built with PREEMPT_RT."
    return built == measured_kernel.RT, "The kernel is not built with PREEMPT_RT."


def _stock_kernel(facts: Facts) -> Holds:
    holds, sentence = _real_time_kernel(facts)
    if holds is None:
        return holds, sentence
    if core := co_kernel(facts):
        return False, f"{core} runs real-time threads beside Linux, and has its own interrupts."
    return not holds, "The kernel is built with PREEMPT_RT, which does this by itself."


def co_kernel(facts: Facts) -> str:
    """The core beside Linux that runs real-time threads, such as Cobalt of Xenomai; "" if none is known."""
    name = facts.preemption.core.value
    return "" if name in (None, measured_kernel.LINUX) else clean(name)


def _cpus(least: int, sentence: str) -> Callable[[Facts], Holds]:
    def judge(facts: Facts) -> Holds:
        online = facts.cpus(ONLINE)
        if online:
            return len(online) >= least, sentence
        if least == SEVERAL_CPUS and any(facts.kernel_isolated or ()):
            return True, "A CPU other than 0 is isolated."
        return None, f"The number of CPUs is not known: {ONLINE} was not read."

    return judge


def nohz_full_cpus(facts: Facts) -> tuple[Reading, frozenset[int] | None]:
    """What tells the CPUs that run without a tick, and these CPUs. None if they are not known.

    Of a file that was not given, the word of the command line tells them.
    """
    file, asked = facts.read(NOHZ_FULL), facts.parameter("nohz_full")
    if file.state is not State.NOT_COLLECTED or not asked.here:
        return file, facts.cpus(NOHZ_FULL)
    return asked, facts.cpus_at_boot("nohz_full")


def divided_cpus(facts: Facts) -> tuple[frozenset[int], frozenset[int]]:
    """The CPUs for real-time threads and the rest, as advice names them; two empty sets where nothing can be divided.

    The first are those to be isolated, or else those that the record measured, or else the upper half.
    """
    online = facts.cpus(ONLINE) or frozenset()
    measured = frozenset(series.cpu for series in facts.record.series)
    upper = frozenset(sorted(online)[len(online) // 2 :])
    for wanted in (facts.isolated or frozenset(), measured, upper):
        if wanted & online and online - wanted:
            return wanted & online, online - wanted
    return frozenset(), frozenset()


def _isolation(facts: Facts) -> Holds:
    cpus = facts.isolated
    if cpus is None:
        return None, "It is not known which CPUs shall be isolated; name them with --cpus."
    online = facts.cpus(ONLINE)
    if cpus and online and cpus >= online:
        return False, "All CPUs shall be isolated, and none is left for the rest of the system."
    return bool(cpus), "No CPU is isolated, and none was named with --cpus."


_VIRTUAL_NAMES = re.compile(
    r"QEMU|KVM|VMware|VirtualBox|innotek|Bochs|Parallels|\bXen\b|HVM domU|Virtual Machine|Firecracker|dummy-virt"
    r"|Apple Virtualization|OpenStack|Google Compute Engine|Alibaba Cloud|vServer|Droplet|Nutanix|oVirt"
    r"|\b(?:a1|[cmrxtgi]\d+[a-z]*|im4gn|is4gen|hpc7g)\.(?:nano|micro|small|medium|large|\d*xlarge)\b"
)
"""The last line: sizes of Amazon's guests, such as m6g.xlarge. A machine without hypervisor is called m6g.metal."""
NAMES_OF_THE_MACHINE = (
    "/sys/class/dmi/id/sys_vendor",
    "/sys/class/dmi/id/product_name",
    "/proc/device-tree/model",
    "/proc/device-tree/compatible",
)


def virtual_machine(facts: Facts) -> Holds:
    """Whether the system is a guest of a hypervisor, with what says so."""
    cpu = facts.read("/proc/cpuinfo")
    sign = _sign_of_hypervisor(facts)
    if sign:
        return True, sign
    if not cpu.here:
        return None, f"It is not known whether this is a virtual machine: /proc/cpuinfo: {cpu.reason}."
    # A device tree that names the machine would name its hypervisor.
    board = any(facts.read(f"/proc/device-tree/{name}").here for name in ("model", "compatible"))
    if not re.search(r"(?m)^flags\s*:", cpu.text) and not board:
        return None, "It is not known whether this is a virtual machine: this processor has no flag that tells."
    return False, "Nothing says that this is a virtual machine."


def _sign_of_hypervisor(facts: Facts) -> str:
    """What says that the system is a guest; "" if nothing does."""
    if system_facts.is_guest(facts.record):
        return "This is a virtual machine."
    told = facts.read("hypervisor")
    if told.here and told.word:
        return f"The processor or the device tree tells of a hypervisor: {clean(' '.join(told.word.split()))}."
    for name in map(facts.read, NAMES_OF_THE_MACHINE):
        if name.here and _VIRTUAL_NAMES.search(name.text):
            return f"{name.path} is that of a virtual machine: {clean(' '.join(name.text.split(chr(0))).strip())}."
    in_tree = facts.read("/proc/device-tree/hypervisor/compatible").here
    return "The device tree has a hypervisor." if in_tree else ""


def _bare_metal(facts: Facts) -> Holds:
    holds, sentence = virtual_machine(facts)
    if holds is None:
        return holds, sentence
    return not holds, "This is a virtual machine, in which this shows nothing of the hardware."


def _machine(pattern: str, name: str) -> Callable[[Facts], Holds]:
    def judge(facts: Facts) -> Holds:
        machine = facts.record.begin.machine
        if not machine:
            return None, "The kind of the machine is not known."
        return bool(re.fullmatch(pattern, machine)), f"The machine is {machine}, not {name}."

    return judge


def _intel(facts: Facts) -> Holds:
    cpu = facts.read("/proc/cpuinfo")
    if not cpu.here:
        return None, f"Who made the CPU is not known, because /proc/cpuinfo was not read ({cpu.reason})."
    return ("GenuineIntel" in cpu.text, "The CPU is not made by Intel.")


def _real_time_groups(facts: Facts) -> Holds:
    """Whether control groups have a budget for real-time threads."""
    if facts.read("rt-group").here:
        return True, "A control group has a budget for real-time threads."
    option, word = facts.option("RT_GROUP_SCHED"), facts.parameter("rt_group_sched")
    disabled = facts.option("RT_GROUP_SCHED_DEFAULT_DISABLED").here
    if option.absent:
        return False, "The kernel is built without RT_GROUP_SCHED."
    if not option.here or not (word.here or word.absent):
        return None, "It is not known whether the kernel has RT_GROUP_SCHED."
    on = word.word not in ("0", "n", "N", "off") if word.here else not disabled
    return on, "RT_GROUP_SCHED is turned off at boot."


def _isolated_by_kernel(facts: Facts) -> Holds:
    """Whether the kernel keeps all CPUs that shall be isolated apart, in any way."""
    kernel = facts.kernel_isolated
    holds = None if kernel is None else (facts.isolated or frozenset()) <= kernel
    return holds, "The kernel does not isolate these CPUs."


CONDITIONS: dict[str, Callable[[Facts], Holds]] = {
    "real-time-kernel": _real_time_kernel,
    "stock-kernel": _stock_kernel,
    "several-cpus": _cpus(SEVERAL_CPUS, "There is only one CPU."),
    "many-cpus": _cpus(MANY_CPUS, f"There are fewer than {MANY_CPUS} CPUs."),
    "isolated-cpus": _isolation,
    "virtual-machine": virtual_machine,
    "bare-metal": _bare_metal,
    "x86": _machine(r"x86_64|i[3-6]86", "x86"),
    "arm": _machine(r"aarch64|arm.*", "Arm"),
    "intel": _intel,
    "process": lambda facts: (facts.record.fact("pid") is not None, "No application was named with --pid."),
    "real-time-groups": _real_time_groups,
    "container": lambda facts: (in_container(facts), "This is no container."),
    "container-marked": lambda facts: (bool(container_marks(facts)), "No file marks a container."),
    "cpus-named": lambda facts: (facts.request.cpus is not None, "No CPU was named with --cpus."),
    "isolated-by-kernel": _isolated_by_kernel,
}


def obeys(facts: Facts, word: str) -> bool:
    """Whether the kernel takes notice of a boot word, as far as its architecture, build and age are known."""
    words = boot_words()
    if any(word in names and not CONDITIONS[on](facts)[0] for on, names in words.parsed_on.items()):
        return False
    option = words.built_with.get(word)
    since = kernel_version(words.since.get("sysctl" if word.startswith("sysctl.") else word, ""))
    old = since and facts.kernel and facts.kernel < since
    return not old and not (option and facts.option(option).absent)
