# SPDX-License-Identifier: Apache-2.0

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rtproof.judge.objections.rules.load_line import shell_fault

BASH = shutil.which("bash")
WORDS = "a b do done while until if then else fi for in { } ( ) ; & | && || \n ! > 2>&1 'x;' $(c) $x echo true case #c"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("while true; do ./doload.sh 65 & ; done & latency", "';' directly after '&'"),
        ("; a", "';' directly after the start"),
        ("a &&", "nothing after '&&'"),
        ("a | | b", "'|' directly after '|'"),
        ("while true; do ; done", "';' directly after 'do'"),
        ("while true; do a", "'do' is not closed"),
        ("if a; then b; done", "'done' closes nothing"),
        ("(a", "'(' is not closed"),
        ("a)", "')' closes nothing"),
        ("echo 'x", "a quotation mark is not closed"),
    ],
)
def test_a_fault_is_told(line: str, says: str) -> None:
    assert shell_fault(line) == says


@pytest.mark.parametrize(
    "line",
    [
        "",
        "stress-ng --cpu 1 &",
        "./prepare_gpio.sh ; chrt -f 99 ./rttest_gpio & while true; do ./doload.sh 65 ; done",
        "while true; do ./doload.sh 65 & done",
        "echo do ; echo done",
        "x='a;;b' y; echo ${a#b} # it's",
        "while (true) do a; done",
        "f() { a; }; f",
        "a &&\n\n b",
        "case $1 in a) b & ;; esac",
        "find . \\; -print",
    ],
)
def test_a_valid_line_is_left_alone(line: str) -> None:
    assert shell_fault(line) is None


@pytest.mark.skipif(BASH is None, reason="bash is not installed")
@settings(max_examples=200)
@given(st.lists(st.sampled_from(WORDS.split(" ")), max_size=9))
def test_what_bash_accepts_is_never_called_faulty(words: list[str]) -> None:
    line = " ".join(words)
    accepts = subprocess.run([str(BASH), "-n", "-c", line], capture_output=True, check=False).returncode == 0
    if accepts:
        assert shell_fault(line) is None
