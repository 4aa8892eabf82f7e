# SPDX-License-Identifier: Apache-2.0
"""A comparison as plain data for JSON. docs/lab.md describes it; a change of meaning there raises VERSION."""

import json
from typing import Any

from rtproof.lab.cells import System, identity
from rtproof.lab.comparison import ONE_OBSERVATION, VIRTUAL_TIME, Comparison, Spot, ranking
from rtproof.lab.page import Making
from rtproof.lab.readings import Reading

SCHEMA = "rtproof.lab.comparison"
VERSION = 1

Json = dict[str, Any]


def to_dict(comparison: Comparison, making: Making) -> Json:
    """Numbers have their unit in the key; a system that lacks figures is not ranked."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "time": "virtual",
        "notes": [VIRTUAL_TIME, ONE_OBSERVATION],
        "command": making.command,
        "rtproof_version": making.version,
        "qemu": dict(making.qemu),
        "agents_sha256": dict(making.agents),
        "setting": _setting(comparison),
        "systems": [_system(system) for system in comparison.systems],
        "ranking": [
            {"system": p.system.name, "load": p.spot.load.name, "max_ns": p.spot.max_ns} for p in ranking(comparison)
        ],
        "cells": [_spot(spot) for spot in comparison.spots],
        "cost": {
            "host_s": comparison.cost.host_s,
            "virtual_s": comparison.cost.virtual_s,
            "elapsed_s": comparison.host_s,
            "run_count": comparison.fresh,
            "cached_count": comparison.cached,
        },
        "exit_code": comparison.exit_code,
    }


def encode(comparison: Comparison, making: Making) -> bytes:
    """The same as UTF-8, indented by two."""
    return json.dumps(to_dict(comparison, making), indent=2, ensure_ascii=False).encode() + b"\n"


def _setting(comparison: Comparison) -> Json:
    setting = comparison.setting
    return {
        "probe": setting.probe,
        "period_ns": setting.period_ns,
        "duration_ns": setting.duration_ns,
        "warmup_ns": setting.warmup_ns,
        "more_arguments": list(setting.more),
        "shifts_count": comparison.shifts,
    }


def _system(system: System) -> Json:
    machine = system.machine
    return {
        "name": system.name,
        "kernel": system.kernel,
        "release": machine.kernel.release,
        "arch": machine.kernel.arch,
        "boot": list(machine.boot),
        "cpus_count": machine.cpus,
        "kernel_sha256": machine.kernel.identity,
        "machine_sha256": identity(machine),
    }


def _spot(spot: Spot) -> Json:
    return {
        "system": spot.system.name,
        "load": spot.load.name,
        "state": "measured" if spot.usable else "failed" if spot.failures else "invalid",
        "failures": list(spot.failures),
        "shifts": [_reading(reading) for reading in spot.readings],
    }


def _reading(reading: Reading) -> Json:
    return {
        "probe": reading.probe,
        "field": reading.field,
        "values_count": reading.count,
        "missed_count": reading.missed,
        "lost_count": reading.lost,
        "min_ns": reading.min_ns,
        "mean_ns": reading.mean_ns,
        "max_ns": reading.max_ns,
        "kernel_version": reading.kernel_version,
        "preemption": reading.preemption or None,
        "core": reading.core,
        "doubts": [{"code": d.code, "severity": d.severity.value, "what": d.what} for d in reading.doubts],
    }
