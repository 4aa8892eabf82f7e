# SPDX-License-Identifier: Apache-2.0
"""Run a tuning as a user asked for it, and write its page, its JSON, and the files that make its result permanent."""

import secrets
import shlex
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from rtproof import report
from rtproof.core import files
from rtproof.core.bounded import decode_json, read_bounded
from rtproof.core.errors import BoardLostError, TargetError, UserError
from rtproof.core.plugins import option_words
from rtproof.core.printable import clean
from rtproof.core.processes import ended_by_signals
from rtproof.core.units import parse_cpus, parse_duration
from rtproof.experiment import run_request, stored_runs, target_runner, target_runs, tuning_runs
from rtproof.experiment.run_request import RunRequest
from rtproof.experiment.run_sets import RUNS_FOLDER
from rtproof.experiment.tuning_runs import TunedTarget, TuningRequest
from rtproof.report.pages.tuning_page import PERMANENT_FOLDER, TITLE, encode_tuning, tuning_sections
from rtproof.report.text_table import fitted_to_terminal
from rtproof.schema.encoder import json_bytes
from rtproof.targets import BootedTarget, Target
from rtproof.tune.knobs import KnobOnTarget, chosen_knobs
from rtproof.tune.permanent import permanent_files
from rtproof.tune.stored_tuning import StoredTuning, stored_tuning
from rtproof.tune.tuning import Tuning

FOR_AGENT = ("probe", "method", "period", "policy", "priority")


def run_tuning(values: Mapping[str, Any], command: Sequence[str]) -> int:
    """Tune; the exit code."""
    ends_s = time.monotonic() + values["budget"] / 1e9
    names = [name.strip() for name in values["knobs"].split(",")] if values["knobs"] is not None else []
    words = [word for name in FOR_AGENT for word in option_words("--" + name, values[name])]
    if values["load"]:
        from rtproof import loads

        words += loads.resolve(values["load"])
    asked = TuningRequest(
        knobs=chosen_knobs(names),
        arguments=tuple(words),
        budget_ns=values["budget"],
        ends_s=ends_s,
        warmup_ns=parse_duration(values["warmup"]),
        # A second of virtual time takes several of this host.
        run_ns=values["run_length"]
        or (tuning_runs.SHORTEST_NS if values["target"] == run_request.QEMU_TARGET else None),
        policy=values["policy"] or "fifo",
        cpus=parse_cpus(values["cpus"]) if values["cpus"] else None,
        limit_ns=values["limit"],
        seed=values["seed"] if values["seed"] is not None else secrets.randbelow(1 << 32),
        reboot=values["reboot"],
    )
    if asked.reboot and values["target"] in NOT_BOOTED:
        raise UserError(NOT_BOOTED[values["target"]])
    own = RunRequest(
        command=tuple(command), target=values["target"], target_options=values["target_option"], agent=values["agent"]
    )
    folder = run_request.new_folder(values["output"], "tune")
    runs = folder / RUNS_FOLDER
    with ended_by_signals(), files.removing_empty_folders(runs):
        runs.mkdir(parents=True)
        with target_runs.open_named_target(own.target, own.target_options) as target:
            if asked.reboot:
                _require_boots(target, own.target)
            own = replace(own, agent=own.agent or target_runner.agent_of(target))  # each run would look for it
            found = tuning_runs.look_at(target, own, asked)
            boots = asked.reboot and any(each.by_boot for each in found.knobs if not each.missing)
            opened = partial(_opened, own, target, boots=boots)
            try:
                result, failure, code = tuning_runs.measure_tuning(opened, own, asked, found, folder)
            finally:
                back = not boots or _booted_back(target)
    encoded = json_bytes(tuning_dict(result, found.knobs, asked, shlex.join(command)))
    _tell(result, found, folder, encoded, as_json=values["as_json"])
    if failure:
        click.echo(clean(f"rtproof: {failure}; what was measured until then is kept"), err=True)
    return code if back else code or tuning_runs.FAILED_CODE


NOT_BOOTED = {
    "local": "--reboot would end rtproof itself: tune this machine from another one, with --target ssh",
    run_request.QEMU_TARGET: "--reboot is for a board: a guest boots for each run anyway",
}


def _require_boots(target: Target, name: str) -> None:
    """UserError if a target cannot be booted. It boots if it has words that a killed tuning left."""
    if not isinstance(target, BootedTarget):
        raise UserError(f"--reboot is for a board with a shell: the target {name} has none")
    target.require_boots()
    target.boot(None)


def _booted_back(target: Target) -> bool:
    """Boot the board with its own command line, unless it is lost. Whether it runs so; a sentence if it does not."""
    assert isinstance(target, BootedTarget)
    try:
        target.boot(None)
    except (UserError, TargetError, KeyboardInterrupt) as problem:
        why = str(problem) or "interrupted"
        if not isinstance(problem, BoardLostError):
            why = f"{why}; {target.host_name()} may run with words of the tuning: boot it"
        click.echo(clean(f"rtproof: {why}"), err=True)
        return False
    return True


def _opened(own: RunRequest, target: Target, boot: str, *, boots: bool) -> AbstractContextManager[Target]:
    """The target itself, booted with these words if boots; or a guest whose kernel has them on its command line."""
    if boots and isinstance(target, BootedTarget):
        target.boot(boot)
    if own.target != run_request.QEMU_TARGET:
        return nullcontext(target)
    options = dict(own.target_options)
    words = f"{options.get('boot', '')} {boot}".strip()
    return target_runs.open_named_target(own.target, tuple({**options, **({"boot": words} if words else {})}.items()))


def _tell(result: Tuning, found: TunedTarget, folder: Path, encoded: bytes, *, as_json: bool) -> None:
    page = folder / "report.html"
    try:
        _print(encoded, as_json=as_json)  # The disk may be full.
    finally:  # Nobody may read the output.
        stored_runs.write_new_file(folder / stored_runs.TUNING_FILE, encoded)
        for name, text in _files(result, found.knobs).items():
            place = folder / PERMANENT_FOLDER / name
            place.parent.mkdir(exist_ok=True)
            stored_runs.write_new_file(place, text.encode())
            place.chmod(0o755 if text.startswith("#!") else 0o644)
        stored_runs.write_new_file(page, report.render("html", TITLE, tuning_sections(_decoded(encoded))))
    if not as_json:
        click.echo(f"page {page}")


def _files(result: Tuning, knobs: Sequence[KnobOnTarget]) -> dict[str, str]:
    """The files that make the kept knobs permanent, by their names."""
    return permanent_files([each for name in result.kept or () for each in knobs if each.knob.name == name])


def tuning_dict(result: Tuning, knobs: Sequence[KnobOnTarget], asked: TuningRequest, command: str) -> dict[str, Any]:
    """The result as plain data."""
    return encode_tuning(stored_tuning(result, knobs, tuple(_files(result, knobs)), command, asked.seed))


def print_tuning(folder: Path, *, as_json: bool = False) -> None:
    """Print the page of a tuning from its file, or the file itself. UserError if it cannot be read."""
    _print(read_bounded(folder / stored_runs.TUNING_FILE), as_json=as_json)


def _print(encoded: bytes, *, as_json: bool) -> None:
    found = _decoded(encoded)
    if as_json:
        click.echo(encoded, nl=False)
        return
    with fitted_to_terminal():
        click.echo(report.render("text", TITLE, tuning_sections(found)), nl=False)


def _decoded(encoded: bytes) -> StoredTuning:
    return decode_json(encoded, StoredTuning, f"{stored_runs.TUNING_FILE} is not that of a tuning")
