# SPDX-License-Identifier: Apache-2.0
"""Records of targets of every kind, as far as they tell of themselves."""

import gzip
from dataclasses import replace

from analysis_records import BEGIN, fact, record
from report_cases import system_file

from rtproof.record.contents import Fact, Moment, Record, SystemFile

CONFIG = "/proc/config.gz"
DEBUGFS = "/sys/kernel/debug/sched/preempt"
THREADS = """\
PID TID CLS RTPRIO NICE PSR COMM
1 1 TS - 0 3 init
14 14 FF 1 - 0 [ktimers/0]
62 62 FF 50 - 0 [irq/24-eth0]
63 63 FF 40 - 1 [irq/25-mmc0]
70 70 TS - -20 1 [kworker/1:0H-kblockd]
900 901 FF 80 - 0 rtproof-0
900 902 DLN - - 2 a (strange) name
"""


def config(text: str) -> SystemFile:
    """As the running kernel gives it."""
    return SystemFile(0, Moment.START, CONFIG, 0, False, gzip.compress(text.encode()))


def target(version: str, *files: SystemFile, release: str = "6.1.0", facts: tuple[Fact, ...] = ()) -> Record:
    begin = replace(BEGIN, kernel_version=version, kernel_release=release)
    return record([], begin=begin, files=files, facts=facts)


def missing(path: str, errno: int = 2) -> SystemFile:
    return system_file(path, "", errno=errno)


NO_COKERNEL = tuple(missing(path) for path in ("/proc/xenomai", "/sys/class/evl", "/proc/rtai"))
XENOMAI_3 = """\
CPU  PID    MSW        CSW        XSC        PF    STAT       %CPU  NAME
  0  0      0          {0}        0          0     00018000  100.0  [ROOT]
  0  817    {0}        3500       3511       0     00248044    0.4  sampling-817
  0  0      0          9000       0          0     00000000    0.1  [IRQ4355: [timer]]
"""
XENOMAI_2 = """\
CPU  PID    MSW        CSW        PF    STAT       %CPU  NAME
  0  0      0          50         0     00500080   99.0  ROOT
  0  411    {0}        500        0     00300184    1.0  latency
"""
TOLD = target(
    "#1 SMP PREEMPT_RT Debian",
    *NO_COKERNEL,
    system_file("threads", THREADS),
    system_file("/proc/timer_list", "Timer List\n  .hres_active    : 1\n  .hres_active    : 1\n"),
    system_file("/proc/sys/kernel/printk", "1\t4\t1\t7\n"),
    system_file("/proc/sys/vm/overcommit_memory", "2\n"),
    system_file("/proc/meminfo", "MemTotal:  61000 kB\nMemFree: 1 kB\nMemAvailable:   20000 kB\nSwapTotal: 0 kB\n"),
    system_file("/proc/mounts", "rootfs / rootfs rw 0 0\n10.0.0.1:/srv / nfs rw,nolock 0 0\nx /mnt cifs rw 0 0\n"),
    system_file("frequencies", "cpu0 performance 800000 800000 800000\ncpu1 schedutil 396000 792000 -\n"),
    system_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tcb_clksrc\n"),
    system_file("/proc/device-tree/model", "Atmel AT91SAM9G20-EK\0"),
    system_file(
        "kernel-log",
        "<6>[0.1] Linux\n<3>[9.1] BUG: scheduling while atomic: swapper/0/0\n<4>[9.2] sched: RT throttling activated\n",
    ),
    missing("/proc/cpuinfo", 13),
    system_file("/proc/fb", "0 mxs-lcdifdrmfb\n"),
    system_file("/proc/modules", "galcore 400000 0 - Live 0xbf000000 (O)\nmali_dp 16384 0 - Live 0xbf100000\n"),
    missing("/sys/class/drm/version"),
    facts=(fact("clock_resolution_ns", 1, Moment.START),),
)
"""A board with its root on the network."""
