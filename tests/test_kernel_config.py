# SPDX-License-Identifier: Apache-2.0

import gzip

from hypothesis import given
from hypothesis import strategies as st
from report_cases import system_file
from system_records import CONFIG, config, target

from rtproof.record.contents import Moment, SystemFile
from rtproof.summary.kernel_model import LARGEST_CONFIG, kernel_config, parse_kernel_config

TEXT = '# Linux/arm 3.0.12-rt30 Kernel Configuration\nCONFIG_HZ=128\nCONFIG_CMDLINE="a=b c"\n# CONFIG_SMP is not set\n'


def test_options_have_values_and_those_left_out_say_no() -> None:
    found = parse_kernel_config("/x", TEXT)
    assert (found.release, found.options) == ("3.0.12-rt30", {"HZ": "128", "CMDLINE": "a=b c", "SMP": "n"})
    assert not found.has("SMP")
    assert not found.has("HZ")


def test_the_running_kernels_own_copy_comes_first() -> None:
    other = system_file("/boot/config-6.1.0", "CONFIG_B=y\n")
    found = kernel_config(target("x", other, config("CONFIG_A=m\n")))
    assert found is not None
    assert (found.path, found.has("A")) == (CONFIG, True)
    found = kernel_config(target("x", system_file(CONFIG, "", errno=2), other))
    assert found is not None
    assert (found.path, found.has("B")) == ("/boot/config-6.1.0", True)


def test_without_a_configuration_there_is_none() -> None:
    assert kernel_config(target("x", system_file(CONFIG, "no gzip"), system_file("/proc/version", TEXT))) is None


def test_a_bomb_is_not_inflated() -> None:
    bomb = gzip.compress(b"CONFIG_A=y\n" + b"x" * (4 * LARGEST_CONFIG))
    found = kernel_config(target("x", SystemFile(0, Moment.START, CONFIG, 0, False, bomb)))
    assert found is not None
    assert found.has("A")


@given(st.binary())
def test_no_content_is_too_strange(content: bytes) -> None:
    found = kernel_config(target("x", SystemFile(0, Moment.START, CONFIG, 0, False, content)))
    assert found is None or found.path == CONFIG
