# SPDX-License-Identifier: Apache-2.0
"""``lab kernels`` and ``lab module``, with a mirror of our own."""

import json
from pathlib import Path

import pytest
from debian_mirror import Mirror, add_kernel, mirror, only_amd64, signing_key

from rtproof.cli.main import main
from rtproof.lab import kernel_catalogue

__all__ = ["mirror", "signing_key"]


@pytest.fixture
def published(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a mirror with one kernel."""
    add_kernel(mirror, "6.1.176-1", "6.1.0-50-rt-amd64")
    mirror.publish()
    monkeypatch.delenv("RTPROOF_MIRROR")
    return mirror.uri


@only_amd64
def test_kernels_are_fetched_and_listed(published: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "kernels", "fetch", "--mirror", published, "debian-6.1-rt"]) == 0
    fetched = capsys.readouterr()
    assert Path(fetched.out.strip()).name == "vmlinuz-6.1.0-50-rt-amd64"
    assert "fetching debian-6.1-rt\n" in fetched.err
    assert main(["lab", "kernels"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["debian-6.1-rt", "x86_64", "voluntary,", "or", "preempt=", "6.1.176-1", "0"] in rows
    assert ["debian-6.1-armhf", "armv7", "not", "RT", "no"] in rows


@only_amd64
def test_listing_can_fetch_first_and_speak_json(published: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "kernels", "--json", "--mirror", published, "--fetch", "debian-6.1-rt"]) == 0
    listed = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert listed["debian-6.1-rt"]["version"] == "6.1.176-1"
    assert Path(listed["debian-6.1-rt"]["folder"]).is_dir()
    assert listed["debian-6.1"]["folder"] is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["kernels", "fetch", "debian-6.1", "linux"],
            "rtproof: there is no kernel 'linux'; there are: debian-6.1-rt, ",
        ),
        (["kernels", "--fetch", "linux"], "rtproof: there is no kernel 'linux'; there are: debian-6.1-rt, "),
        (["module", "--kernel", "linux"], "rtproof: there is no kernel 'linux'; there are: debian-6.1-rt, "),
        (["kernels", "fetch", "--mirror", "here", "debian-6.1"], "rtproof: 'here' is not the address of a mirror"),
        (["kernels", "fetch"], "rtproof: Missing argument 'NAME...'"),
    ],
)
def test_refusals_are_one_sentence_before_anything_is_fetched(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["lab", *words]) == 2
    *said, last = capsys.readouterr().err.splitlines()
    assert last.startswith(sentence)
    assert [line for line in said if not line.startswith("fetching")] == []
    assert not list((tmp_path / "cache").rglob("*.deb"))


def test_a_module_is_printed_with_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def module(*arguments: object) -> Path:
        asked.append(arguments[:3])
        return tmp_path / "other.ko"

    monkeypatch.setattr(kernel_catalogue, "module_for_kernel", module)
    assert main(["lab", "module", "--kernel", "debian-6.1", "--which", "other"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/other.ko\n"
    assert asked == [("debian-6.1", "other", "")]
