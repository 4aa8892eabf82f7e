# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest
from debian_mirror import Mirror, add_kernel, mirror, only_amd64, signing_key

from rtproof.lab import kernel_catalogue
from rtproof.lab.kernel_catalogue import list_kernels, preemption_of_config

__all__ = ["mirror", "signing_key"]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("CONFIG_PREEMPT=y\nCONFIG_PREEMPT_RT=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "PREEMPT_RT"),
        ("CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "voluntary, or preempt="),
        ("CONFIG_PREEMPT=y\nCONFIG_PREEMPT_COUNT=y\n", "full"),
        ("CONFIG_PREEMPT_LAZY=y\nCONFIG_PREEMPT_DYNAMIC=y\n", "lazy, or preempt="),
        ("CONFIG_PREEMPT_NONE=y\n# CONFIG_PREEMPT_RT is not set\n", "none"),
    ],
)
def test_the_preemption_model_is_read_from_the_configuration(config: str, words: str) -> None:
    assert preemption_of_config(config) == words


def test_an_empty_cache_has_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    listed = list_kernels()
    assert [each.name for each in listed] == [entry.name for entry in kernel_catalogue.catalogue()]
    assert {(each.version, each.folder, each.size_bytes) for each in listed} == {(None, None, None)}
    assert {each.preemption for each in listed if "-rt" in each.name} == {"PREEMPT_RT"}


@only_amd64
def test_what_is_in_the_cache_is_described(mirror: Mirror) -> None:
    add_kernel(mirror, "6.1.176-1", "6.1.0-50-amd64", ending="-unsigned")
    mirror.publish()
    image = kernel_catalogue.fetch_kernel("debian-6.1").image
    (each,) = (each for each in list_kernels() if each.name == "debian-6.1")
    assert (each.package, each.version) == ("linux-image-6.1.0-50-amd64-unsigned", "6.1.176-1")
    assert (each.preemption, each.suite) == ("voluntary, or preempt=", "bookworm")
    assert each.folder == image.parents[1]
    assert each.size_bytes is not None
    assert each.size_bytes > image.stat().st_size
