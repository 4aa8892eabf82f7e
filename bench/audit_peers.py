# SPDX-License-Identifier: Apache-2.0
"""Give planted misconfigurations to kernel-hardening-checker, rtcqs and tuned's verify, and see which they find.

    python bench/audit_peers.py ROOT CHECKER

ROOT: a folder made by ``debootstrap --variant=minbase --include=python3,tuned bookworm ROOT``, with rtcqs of PyPI in
ROOT/usr/lib/python3/dist-packages. CHECKER: a checkout of kernel-hardening-checker. A guest boots with ROOT. In
it, tuned applies its profile realtime, and each setting is planted, looked at by rtcqs and tuned, and taken back.
kernel-hardening-checker reads files: it gets those of every plant in stored facts. A tool has found a plant if it
complains of something of which it did not complain without it. The answers go to build/audit-peers.json.
"""

import json
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from audit_guests import AuditedGuest
from audit_plants import PLANTS, SYSTEMS, Plant, RealPlant
from audit_plants import REAL_PLANTS as GUEST_PLANTS
from audit_systems import EditedSystem

from rtproof.core.errors import TargetError
from rtproof.lab import kernel_catalogue
from rtproof.record.contents import Moment, Record
from rtproof.vm.guest import Job, run_job
from rtproof.vm.kernel_files import Kernel
from rtproof.vm.machine import Machine, Mode

RESULT = Path(__file__).parent.parent / "build" / "audit-peers.json"
IN_GUEST = """
mkdir /peers && mount -t tmpfs -o size=80% tmpfs /peers && tar -x -f /peers.tar -C /peers
for each in proc sys dev; do mkdir -p /peers/$each; mount -o rbind /$each /peers/$each; done
cp /boot/config-* /peers/boot/
cp /plants.json /drive.py /peers/
mkdir -p /peers/run/tuned /peers/var/log/tuned /peers/etc/tuned
echo isolated_cores=2-3 > /peers/etc/tuned/realtime-variables.conf
chroot /peers /usr/bin/python3 /drive.py
cp /peers/answers.json /out/
"""
DRIVER = r"""
import json, logging, os, re, subprocess, time
lines = []
class Kept(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())
def of_rtcqs():
    done = subprocess.run(["python3", "-c", "from rtcqs.rtcqs import main; main()"], capture_output=True, text=True)
    heads = re.findall(r"(?m)^(.+)\n=+\n\[ \x1b\[31mWARNING", done.stdout)
    return heads + (["it ended with an exception: " + done.stderr.strip().splitlines()[-1]] if done.returncode else [])
try:
    import tuned.logs
    from tuned.daemon.application import Application
    log = tuned.logs.get(); log.setLevel(logging.INFO); log.addHandler(Kept())
    manager = (daemon := Application("realtime")._daemon)._unit_manager
    manager.create(daemon._profile.units); manager.start_tuning()
    applied = [line for line in lines if "error" in line.lower() or "fail" in line.lower()]
    trouble = ""
except Exception as problem:
    trouble, applied = repr(problem) + " " + " | ".join(lines[-5:]), []
def of_tuned():
    if trouble:
        return [trouble]
    del lines[:]
    manager.verify_tuning(False)
    return [line for line in lines if "verify: failed" in line]
answers = {"": {"rtcqs": of_rtcqs(), "tuned": of_tuned(), "tuned_while_applying": applied}}
for plant in json.load(open("/plants.json")):
    before = None
    if plant["path"]:
        try:
            before = open(plant["path"]).read()
        except OSError:
            pass
    child = subprocess.Popen(["sh", "-c", plant["command"]])
    time.sleep(1)
    answers[plant["name"]] = {"rtcqs": of_rtcqs(), "tuned": of_tuned()}
    if plant["path"] and before is not None:
        chosen = re.search(r"[\[(]([^\])]+)[\])]", before)
        back = chosen[1] if chosen else before.split()[0] if before.split() else ""
        try:
            open(plant["path"], "w").write(back + "\n")
        except OSError as problem:
            answers[plant["name"]]["not_taken_back"] = repr(problem)
    child.kill()
json.dump(answers, open("/answers.json", "w"))
"""


@dataclass(frozen=True)
class Found:
    """What a tool says with a plant that it does not say without it."""

    plant: str
    expected: tuple[str, ...]
    more: tuple[str, ...]


def in_guests(root: Path) -> dict[str, Any]:
    """The answers of rtcqs and tuned to each plant in a guest, by guest."""
    answers: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="rtproof-peers-") as folder:
        packed = Path(folder) / "peers.tar"
        with tarfile.open(packed, "w") as tar:
            tar.add(root, ".")
        for guest in dict.fromkeys(plant.guest for plant in GUEST_PLANTS):
            plants = [plant for plant in GUEST_PLANTS if plant.guest == guest]
            written = [plant for plant in plants if plant.setup]
            _ask(guest, written, packed, answers)
            for plant in plants:
                if plant.boot:
                    _ask(guest.with_more(plant.boot), [], packed, answers, plant.name)
    return answers


def _ask(guest: AuditedGuest, plants: list[RealPlant], packed: Path, answers: dict[str, Any], called: str = "") -> None:
    name = guest.kernel
    kernel = kernel_catalogue.fetch_kernel(name)
    files = (("/peers.tar", packed),)
    machine = Machine(kernel, boot=guest.boot, mode=Mode.WALL_CLOCK, cpus=4, memory_mib=1536, files=files)
    with tempfile.TemporaryDirectory(prefix="rtproof-peers-") as folder:
        here = Path(folder)
        (here / "plants.json").write_text(json.dumps([_as_command(plant) for plant in plants]))
        (here / "drive.py").write_text(DRIVER)
        job = Job(
            "\n".join((*guest.setup, IN_GUEST)),
            (("/plants.json", here / "plants.json"), ("/drive.py", here / "drive.py"), _config(kernel)),
        )
        try:
            said = run_job(machine, job, here / "out")
        except TargetError as problem:
            print(f"{name} {called}: {problem}", file=sys.stderr)
            return
        place = here / "out" / "answers.json"
        if not place.is_file():
            print(f"{name} {called}: {said.said[-600:]}", file=sys.stderr)
            return
        told = json.loads(place.read_bytes())
        answers[f"{name} {called}".strip()] = told
        print(f"{name} {called}: {len(told)} answers", flush=True)


def _as_command(plant: RealPlant) -> dict[str, str]:
    command = "\n".join(plant.setup)
    path = re.search(r"> (/\S+)$", command)
    return {"name": plant.name, "command": command.replace("taskset 8", "taskset 0x8"), "path": path[1] if path else ""}


def _config(kernel: Kernel) -> tuple[str, Path]:
    file = kernel.image.with_name(f"config-{kernel.release}")
    return f"/boot/{file.name}", file


def found_by_checker(checker: Path) -> list[Found]:
    """What kernel-hardening-checker says of the files of each plant in stored facts that changes one of them."""
    before = {
        name: _checked(checker, system.record())
        for name, system in SYSTEMS.items()
        if name in ("sound", "pc", "older", "stock")
    }
    found = []
    for plant in PLANTS:
        if plant.system in before and _touches_files(plant):
            now = _checked(checker, SYSTEMS[plant.system].record(plant.edits))
            found.append(Found(plant.name, plant.expected, tuple(sorted(now - before[plant.system]))))
    return found


def _texts(record: Record) -> tuple[str, str, str]:
    """The configuration, the command line, and the sysctls, as the tool reads them."""
    system = EditedSystem.of(record)
    config = system.text(system.config_path())
    sysctls = [
        f"{path.removeprefix('/proc/sys/').replace('/', '.')} = {' '.join(system.text(path).split())}"
        for at, path in system.files
        if at is Moment.START and path.startswith("/proc/sys/") and not system.files[at, path].errno
    ]
    return config, system.text("/proc/cmdline"), "\n".join(sysctls) + "\n"


def _touches_files(plant: Plant) -> bool:
    return _texts(SYSTEMS[plant.system].record()) != _texts(SYSTEMS[plant.system].record(plant.edits))


def _checked(checker: Path, record: Record) -> frozenset[str]:
    """The checks that fail, by name."""
    config, cmdline, sysctls = _texts(record)
    kernels = map(kernel_catalogue.fetch_kernel, ("debian-6.12-rt", "debian-6.12", "debian-6.1-rt"))
    by_release = {kernel.release: kernel for kernel in kernels}
    kernel = by_release.get(record.begin.kernel_release) or next(iter(by_release.values()))
    whole = _config(kernel)[1].read_text().splitlines()
    named = {line.split("=")[0].removeprefix("# ").split(" ")[0] for line in config.splitlines()}
    kept = [line for line in whole if line.removeprefix("# ").split("=")[0].split(" ")[0] not in named]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "config").write_text("\n".join(kept) + "\n" + config)
        (place / "cmdline").write_text(cmdline)
        (place / "sysctl").write_text(sysctls)
        command: list[str | Path] = [sys.executable, checker / "bin" / "kernel-hardening-checker", "-m", "json"]
        command += ["-c", place / "config", "-l", place / "cmdline", "-s", place / "sysctl"]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(checker)})
    if done.returncode:
        raise SystemExit(done.stdout[-300:] + done.stderr[-300:])
    rows = json.loads(done.stdout[done.stdout.index("[") :])
    return frozenset(str(row["option_name"]) for row in rows if str(row["check_result"]).startswith("FAIL"))


def of_guests(answers: dict[str, Any], tool: str) -> Iterable[Found]:
    """What rtcqs or tuned says with a plant in a guest."""
    for plant in GUEST_PLANTS:
        base = answers.get(plant.guest.kernel)
        told = (
            answers.get(f"{plant.guest.kernel} {plant.name}", {}).get("")
            if plant.boot
            else (base or {}).get(plant.name)
        )
        if base and told:
            yield Found(plant.name, plant.expected, tuple(sorted(set(told[tool]) - set(base[""][tool]))))


def main(arguments: list[str]) -> int:
    """Ask all tools, and write what they answered."""
    root, checker = map(Path, arguments)
    told = found_by_checker(checker)
    answers = in_guests(root)
    found = {"kernel-hardening-checker": told, **{tool: list(of_guests(answers, tool)) for tool in ("rtcqs", "tuned")}}
    rows = {name: [vars(each) for each in rows] for name, rows in found.items()}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps({"found": rows, "answers": answers}, indent=1) + "\n")
    for name, rows_of in found.items():
        print(f"{name}: {sum(bool(each.more) for each in rows_of)} of {len(rows_of)} plants")
        for each in rows_of:
            if each.more:
                print(f"  {each.plant} ({', '.join(each.expected)}): {'; '.join(each.more)[:200]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
