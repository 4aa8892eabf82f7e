# SPDX-License-Identifier: Apache-2.0

from dataclasses import replace
from errno import ENOENT

from report_cases import normal, nothing, system_file, tables
from system_records import config

from rtproof import report
from rtproof.record.contents import Moment
from rtproof.report.sections import system


def test_machine_kernel_and_processor_are_named_once() -> None:
    assert tables(system.system_section(normal()))["Machine and kernel"].rows == (
        ("machine", "x86_64"),
        ("kernel", "6.1.0-rt #1 SMP PREEMPT_RT"),
        ("processor", "A processor"),
    )


def test_files_of_one_line_are_shown_and_a_change_is_named() -> None:
    analysis = normal()
    files = (
        system_file("/proc/loadavg", "1.00\n"),
        system_file("/proc/loadavg", "2.00\n", Moment.END),
        system_file("/sys/x/clocksource", "tsc\n"),
        system_file("/sys/x/clocksource", "tsc\n", Moment.END),
        system_file("/sys/x/isolated", "\n"),
    )
    found = tables(system.system_section(replace(analysis, record=replace(analysis.record, files=files))))
    assert found["Settings of the kernel"].rows == (
        ("/proc/loadavg", "1.00; at the end: 2.00"),
        ("/sys/x/clocksource", "tsc"),
        ("/sys/x/isolated", "(empty)"),
    )


def test_files_of_the_trace_are_no_settings() -> None:
    analysis = normal()
    files = (system_file("trace/trace_clock", "[mono]\n", Moment.END), system_file("threads", "one line\n"))
    found = tables(system.system_section(replace(analysis, record=replace(analysis.record, files=files))))
    assert "Settings of the kernel" not in found


def test_options_of_the_configuration_are_told_as_far_as_it_names_them() -> None:
    """What article 1 tells to switch on for its board."""
    text = "CONFIG_HIGH_RES_TIMERS=y\nCONFIG_HZ=128\n# CONFIG_ATMEL_TCLIB is not set\nCONFIG_DRM=m\nCONFIG_OTHER=y\n"
    analysis = replace(normal(), record=replace(normal().record, files=(config(text),)))
    found = tables(system.system_section(analysis))
    (table,) = (table for caption, table in found.items() if "configuration" in caption)
    assert table.caption == "The kernel's configuration, by /proc/config.gz: what articles tell to look at"
    assert table.rows == (
        ("CONFIG_HIGH_RES_TIMERS", "built in"),
        ("CONFIG_HZ", "128"),
        ("CONFIG_ATMEL_TCLIB", "left out"),
        ("CONFIG_DRM", "a module"),
    )


def test_every_file_is_listed_with_its_size_or_why_it_was_not_read() -> None:
    table = tables(system.system_section(normal()))["Files kept in the record"]
    assert table.folded
    assert ("/proc/modules", "start", "not read: No such file or directory") in table.rows
    assert ("/proc/cmdline", "start", "17 bytes") in table.rows
    assert len(table.rows) == len(normal().record.files)


def test_a_file_in_parts_is_one_row() -> None:
    parts = (system_file("trace/text", "abc", Moment.END), system_file("trace/text", "de", Moment.END))
    analysis = replace(normal(), record=replace(normal().record, files=(*parts, system_file("trace/text", "f"))))
    table = tables(system.system_section(analysis))["Files kept in the record"]
    assert table.rows == (("trace/text", "end", "5 bytes in 2 parts"), ("trace/text", "start", "1 bytes"))


def test_what_the_host_told_is_listed_but_not_the_command() -> None:
    sections = report.compose(normal(), {"target": "ssh board7"}, "rtproof run")
    (section,) = (section for section in sections if section.name == "system")
    rows = tables(section.blocks)["Machine and kernel"].rows
    assert ("target", "ssh board7") in rows
    assert not any("rtproof run" in cell for row in rows for cell in row)


def test_a_record_without_files_names_what_it_knows_of_the_kernel() -> None:
    assert list(tables(system.system_section(nothing()))) == ["Machine and kernel", "Preemption model"]


def test_no_kernel_beside_linux_is_called_none() -> None:
    """In the JSON form it is "linux", which as an answer to what runs beside Linux reads like a riddle."""
    files = tuple(
        replace(system_file(path, ""), errno=ENOENT) for path in ("/proc/xenomai", "/sys/class/evl", "/proc/rtai")
    )
    analysis = normal()
    for kept, value in ((files, "none"), ((), "unknown")):
        found = tables(system.system_section(replace(analysis, record=replace(analysis.record, files=kept))))
        rows = {row[0]: row[1] for row in found["Preemption model"].rows}
        assert rows["kernel beside Linux"] == value
