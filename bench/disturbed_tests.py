#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: disturbed_tests.py TIMES COMMAND...    runs a command several times on a busy machine, as root

Four busy loops take their share of the CPUs. On each CPU, a thread of FIFO 99 computes for 1 to 30 ms at random, and
sleeps for 20 to 300 ms. The last line says how many of the runs failed.
"""

import multiprocessing
import os
import random
import subprocess
import sys
import time

LOOPS = 4
BURST_S = (0.001, 0.030)
PAUSE_S = (0.020, 0.300)


def loop(parent: int) -> None:
    while os.getppid() == parent:
        pass


def bursts(parent: int, cpu: int) -> None:
    os.sched_setaffinity(0, {cpu})
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))
    while os.getppid() == parent:
        end = time.monotonic() + random.uniform(*BURST_S)  # noqa: S311
        while time.monotonic() < end:
            pass
        time.sleep(random.uniform(*PAUSE_S))  # noqa: S311


def main() -> int:
    times, command = int(sys.argv[1]), sys.argv[2:]
    others = [multiprocessing.Process(target=loop, args=(os.getpid(),), daemon=True) for _ in range(LOOPS)]
    others += [
        multiprocessing.Process(target=bursts, args=(os.getpid(), cpu), daemon=True) for cpu in os.sched_getaffinity(0)
    ]
    for other in others:
        other.start()
    failed = 0
    try:
        for number in range(1, times + 1):
            began = time.monotonic()
            code = subprocess.run(command, check=False).returncode
            failed += code != 0
            print(f"run {number}: exit code {code} after {(time.monotonic() - began) / 60:.1f} min", flush=True)
    finally:
        died = [other.exitcode for other in others if not other.is_alive()]
        for other in others:
            other.terminate()
    print(f"{failed} of {times} runs failed" + (f"; {len(died)} disturbers had died" if died else ""))
    return 1 if failed or died else 0


if __name__ == "__main__":
    sys.exit(main())
