# SPDX-License-Identifier: Apache-2.0
"""usage: audit_fixtures.py [NAME...]    collects the facts of systems anew for the tests of the audit

NAME: of SYSTEMS; all without. The agent collects them in guests of the lab, on this machine and in a container. What
names people or programs of this machine is taken out before the facts are stored in tests/data/audit.
"""

import gzip
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from audit_guests import AGENT, AuditedGuest, collect_in
from audit_systems import (
    FAIR_SERVER_OFF,
    FOLDER,
    SOUND_BOOT,
    SOUND_SETUP,
    bytes_of_record,
    record_of_bytes,
    stored_place,
)

from rtproof.agents.build import build_agent
from rtproof.core.errors import RtproofError
from rtproof.record.contents import SystemFile

APPLICATION = (
    f"taskset f {AGENT} run --probe timer --cpus 2-3 --priority 80 --duration 60s -o /tmp/run.rtrec "
    ">/dev/null 2>&1 & sleep 3"
)
"""A program that does what real-time threads should: a policy, locked memory, a CPU of its own for each."""
WRONG_APPLICATION = 'awk \'BEGIN { while (1) { text = text "x"; if (length(text) > 4000000) text = "" } }\' & sleep 1'
"""A program that does nothing of this, and takes new memory all the time."""
GUESTS = {
    **{
        f"debian-{series}{rt}{arch}": AuditedGuest(f"debian-{series}{rt}{arch}", 1 if arch == "-armhf" else 2)
        for arch in ("", "-arm64", "-armhf")
        for series in ("6.1", "6.12")
        for rt in ("-rt", "")
    },
    "sound-6.12-rt": AuditedGuest("debian-6.12-rt", 4, SOUND_BOOT, (*SOUND_SETUP, FAIR_SERVER_OFF)),
    "sound-6.1-rt": AuditedGuest("debian-6.1-rt", 4, SOUND_BOOT, SOUND_SETUP),
    "sound-6.12": AuditedGuest("debian-6.12", 4, (*SOUND_BOOT, "preempt=full", "threadirqs"), SOUND_SETUP),
    "sound-application": AuditedGuest("debian-6.12-rt", 4, SOUND_BOOT, (*SOUND_SETUP, APPLICATION), (), True),
    "wrong-application": AuditedGuest("debian-6.12-rt", 4, SOUND_BOOT, (*SOUND_SETUP, WRONG_APPLICATION), (), True),
}
CONTAINER = """
set -e
for file in /proc/timer_list /proc/keys /proc/latency_stats /proc/kcore /proc/sched_debug; do
	[ ! -e $file ] || mount --bind /dev/null $file
done
for folder in /proc/acpi /proc/scsi /sys/firmware /sys/devices/virtual/powercap; do
	[ ! -d $folder ] || mount -t tmpfs -o ro tmpfs $folder
done
for folder in /proc/bus /proc/fs /proc/irq /proc/sys; do
	mount --bind $folder $folder
	mount -o remount,bind,ro $folder
done
mount -t sysfs -o ro sysfs /sys
exec setpriv --bounding-set -all --inh-caps -all --no-new-privs $USER_WORDS "$AGENT" facts -o "$OUT"
"""
"""What Docker does to /proc and /sys of a container, with no capability at all."""


def of_this_machine(folder: Path) -> bytes:
    """The facts of this machine."""
    return _run([str(build_agent()), "facts", "-o", f"{folder}/facts"], folder)


def of_container(folder: Path, user: str = "") -> bytes:
    """The facts that a container on this machine shows. user: options of setpriv for another user than root."""
    agent = folder / "agent"
    agent.write_bytes(build_agent().read_bytes())
    agent.chmod(0o755)
    folder.chmod(0o777)
    words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--uts", "--ipc", "--net", "--cgroup"]
    names = {"AGENT": str(agent), "OUT": f"{folder}/facts", "USER_WORDS": user}
    return _run([*words, "env", *(f"{key}={value}" for key, value in names.items()), "sh", "-c", CONTAINER], folder)


def _run(words: list[str], folder: Path) -> bytes:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{words[0]}: {done.stderr[-400:]}")
    return (folder / "facts").read_bytes()


SYSTEMS: dict[str, Callable[[Path], bytes]] = {
    **{name: partial(collect_in, guest) for name, guest in GUESTS.items()},
    "virtual-machine": of_this_machine,
    "container": of_container,
    "container-user": lambda folder: of_container(folder, "--reuid 65534 --regid 65534 --clear-groups"),
}
"""How each fixture is collected."""


def main(names: list[str]) -> int:
    """Collect the systems; 1 if one of them cannot be had."""
    failed = 0
    for name in names or SYSTEMS:
        with tempfile.TemporaryDirectory(prefix="rtproof-audit-") as folder:
            try:
                record = SYSTEMS[name](Path(folder))
            except RtproofError as problem:
                print(f"{name}: {problem}", file=sys.stderr)
                failed = 1
                continue
        FOLDER.mkdir(exist_ok=True)
        place = stored_place(name)
        kept = record if name in GUESTS else private_parts_out(record)
        place.write_bytes(gzip.compress(kept, 9, mtime=0))
        print(f"{place}: {len(record):,} bytes, {place.stat().st_size:,} stored", flush=True)
    return failed


KEPT_MOUNTS = re.compile(r"\S+ /((proc|sys|dev)(/\S*)?)? ")
"""Mounts that an audit looks at."""
COMM_LISTS = {"tasks": 9, "threads": 6, "rt-threads": 7, "process/threads": 10}
"""Lists of threads, and how many columns stand before the name."""


OUT = (
    (r"(Kernel command line: .*?) -- .*", r"\1"),
    (r" ?\b(nvproxy\.enable|nested_pvm|sched_vcpu_pack|page_reporting\.\w+|deferred_init|rdinit)=\S+", ""),
    (r"\(builder@\S+\)", "(builder@host)"),
    (r"-fc-v\d+", ""),
    (r"process_api", "service"),
    (r"nvproxy", "driver"),
)
"""What the host of this machine gave its kernel, and what stands for it."""


def private_parts_out(content: bytes) -> bytes:
    """The record without the names of this machine's programs, folders and services."""
    record = record_of_bytes(content)
    begin = replace(record.begin, kernel_release=_plain(record.begin.kernel_release))
    return bytes_of_record(replace(record, begin=begin, files=tuple(map(_without_names, record.files))))


def _plain(text: str) -> str:
    for pattern, new in OUT:
        text = re.sub(pattern, new, text)
    return text


def _without_names(file: SystemFile) -> SystemFile:
    if file.content.startswith(b"\x1f\x8b"):
        config = gzip.decompress(file.content).decode(errors="replace")
        return replace(file, content=gzip.compress(_plain(config).encode(), 9, mtime=0))
    text = file.content.decode(errors="replace")
    if file.path == "/proc/cmdline":
        text = text.partition(" -- ")[0].rstrip("\n") + "\n"
    elif file.path == "/proc/mounts":
        text = "".join(each for each in text.splitlines(keepends=True) if KEPT_MOUNTS.match(each))
    elif file.path in COMM_LISTS:
        text = "\n".join(_without_name(each, COMM_LISTS[file.path]) for each in text.split("\n"))
    return replace(file, path=_plain(file.path), content=_plain(text).encode())


def _without_name(row: str, before: int) -> str:
    """The row of a thread. Those of the kernel, and the header, keep their names."""
    words = row.split(" ", before)
    kept = len(words) <= before or words[-1].startswith("[") or row.startswith("PID ")
    return row if kept else " ".join((*words[:-1], "program"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
