# SPDX-License-Identifier: Apache-2.0

import re
from pathlib import Path

import lab_kernels
import pytest
from debian_mirror import Mirror, add_kernel, image, mirror, only_amd64, signing_key

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.lab import kernel_catalogue
from rtproof.lab.kernel_catalogue import preemption_of_config
from rtproof.vm.kernel_files import open_kernel

__all__ = ["mirror", "signing_key"]


RELEASE = "6.1.0-50-rt-amd64"


@pytest.fixture
def published(mirror: Mirror) -> Mirror:
    add_kernel(mirror, "6.1.176-1", RELEASE)
    mirror.publish()
    return mirror


def own_image(folder: Path, release: str = "6.9.1") -> Path:
    path = folder / "bzImage"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(image(release))
    return path


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("debian-6.1", "linux-image-6.1.0-50-amd64"),
        ("debian-6.1-rt", "linux-image-6.1.0-50-rt-amd64"),
        ("debian-6.12", "linux-image-6.12.95+deb12-amd64-unsigned"),
        ("debian-6.12-rt", "linux-image-6.12.95+deb12-rt-amd64"),
        ("debian-6.1-arm64", "linux-image-6.1.0-50-arm64"),
        ("debian-6.12-rt-arm64", "linux-image-6.12.95+deb12-rt-arm64-unsigned"),
        ("debian-6.1-rt-armhf", "linux-image-6.1.0-50-rt-armmp"),
        ("debian-6.12-armhf", "linux-image-6.12.95+deb12-armmp"),
        ("debian-5.10", "linux-image-5.10.0-46-amd64"),
        ("debian-5.10-rt", "linux-image-5.10.0-32-rt-amd64"),
    ],
)
def test_each_name_stands_for_its_packages_and_no_others(name: str, package: str) -> None:
    others = [
        "linux-image-6.1.0-50-cloud-amd64",
        "linux-image-6.12.95+deb12-rt-amd64-dbg",
        "linux-image-6.12.95+deb12-armmp-lpae",
        "linux-image-6.11.5+bpo-amd64",
        "linux-image-amd64",
    ]
    fitting = [e.name for e in kernel_catalogue.catalogue() if re.fullmatch(e.image_pattern, package)]
    assert fitting == [name]
    assert not any(re.fullmatch(e.image_pattern, other) for e in kernel_catalogue.catalogue() for other in others)


@only_amd64
def test_a_kernel_is_fetched_with_all_that_it_needs(published: Mirror) -> None:
    kernel = kernel_catalogue.fetch_kernel("debian-6.1-rt")
    assert (kernel.arch, kernel.release) == ("x86_64", RELEASE)
    assert kernel.modules is not None
    assert [path.name for path in kernel.modules.rglob("*.ko")] == ["loop.ko"]
    assert kernel_catalogue.fetch_busybox("x86_64").read_bytes() == b"not really\n"
    assert "include ../linux-headers-6.1.0-50-common-rt/Makefile" in (
        (kernel_catalogue.kernel_headers("debian-6.1-rt") / "Makefile").read_text()
    )
    kept = {path.name for path in kernel.image.parents[1].rglob("*") if path.is_file()}
    assert kept == {f"vmlinuz-{RELEASE}", f"config-{RELEASE}", "loop.ko", "Makefile", "tool", "files.json"}


@only_amd64
def test_an_exact_version_is_that_one_also_if_a_newer_one_is_there(published: Mirror) -> None:
    add_kernel(published, "6.1.192-1", RELEASE, "bookworm-security")
    add_kernel(published, "6.1.192-2", "6.1.0-56-rt-amd64", "bookworm-security")
    published.publish()
    newest = kernel_catalogue.fetch_kernel("debian-6.1-rt")
    older = kernel_catalogue.fetch_kernel("debian-6.1-rt@6.1.192-1")
    assert (newest.release, older.release) == ("6.1.0-56-rt-amd64", RELEASE)
    assert kernel_catalogue.exact_name("debian-6.1-rt", newest) == "debian-6.1-rt@6.1.192-2"
    assert kernel_catalogue.exact_name("debian-6.1-rt@6.1.192-1", older) == "debian-6.1-rt@6.1.192-1"
    assert kernel_catalogue.exact_name("debian-6.1-rt", older) == ""
    assert kernel_catalogue.resolve_kernel("debian-6.1-rt@6.1.192-1") == older
    assert "debian-6.1-rt@6.1.192-1" in [each["name"] for each in kernel_catalogue.list_kernels()]


@pytest.mark.parametrize("text", ["debian-6.1@", "debian-6.1@../../etc", "debian-6.1@v6", "debian-6.1@6.1 1"])
def test_a_version_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="has no version of Debian's packages behind the @"):
        kernel_catalogue.resolve_kernel(text)


@only_amd64
def test_a_damaged_kernel_is_fetched_again(published: Mirror) -> None:
    kernel = kernel_catalogue.fetch_kernel("debian-6.1-rt")
    kernel.image.write_bytes(kernel.image.read_bytes()[:-1] + b"x")
    assert kernel_catalogue.cached_kernel(kernel_catalogue.catalogue_entry("debian-6.1-rt")) is None
    assert kernel_catalogue.fetch_kernel("debian-6.1-rt") == kernel


@pytest.mark.parametrize("place", [".", "boot"])
def test_modules_beside_an_image_are_found(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "lib" / "modules" / "6.9.1"
    folder.mkdir(parents=True)
    assert kernel_catalogue.resolve_kernel(str(own_image(tmp_path / place))).modules == folder


@pytest.mark.parametrize("name", ["debian-6.1-rt", "debian-6.1"])
def test_debians_kernels_are_what_their_names_say(name: str) -> None:
    kernel = lab_kernels.fetched(name)
    assert kernel.arch == "x86_64"
    assert re.fullmatch(r"6\.1\.0-\d+-(rt-)?amd64", kernel.release)
    assert ("-rt-" in kernel.release) == name.endswith("-rt")
    assert kernel == open_kernel(kernel.image, kernel.modules)
    assert (kernel_catalogue.kernel_headers(name) / ".config").is_file()


@only_amd64
def test_kernels_are_fetched_and_listed(
    published: Mirror, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RTPROOF_MIRROR")
    assert main(["lab", "kernels", "fetch", "--mirror", published.uri, "debian-6.1-rt"]) == 0
    assert Path(capsys.readouterr().out.strip()).name == "vmlinuz-6.1.0-50-rt-amd64"
    assert main(["lab", "kernels"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["debian-6.1-rt", "x86_64", "voluntary,", "or", "preempt=", "6.1.176-1", "0"] in rows
    assert ["debian-6.1-armhf", "armv7", "not", "RT", "no"] in rows


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["kernels", "fetch", "debian-6.1", "linux"], "rtproof: there is no kernel 'linux'; there are: debian-6.1-rt"),
        (["module", "--kernel", "linux"], "rtproof: there is no kernel 'linux'; there are: debian-6.1-rt, "),
        (["kernels", "fetch", "--mirror", "here", "debian-6.1"], "rtproof: 'here' is not the address of a mirror"),
    ],
)
def test_refusals_are_one_sentence_before_anything_is_fetched(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["lab", *words]) == 2
    *said, last = capsys.readouterr().err.splitlines()
    assert last.startswith(sentence)
    assert [line for line in said if not line.startswith("fetching")] == []
    assert not list((tmp_path / "cache").rglob("*.deb"))


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
