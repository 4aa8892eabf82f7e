# SPDX-License-Identifier: Apache-2.0

import json
import re
from pathlib import Path

import lab_kernels
import pytest
from debian_mirror import Mirror, add_kernel, image, mirror, only_amd64, signing_key

from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.lab import kernel_catalogue
from rtproof.lab.debian_packages import Archive, UnavailableError
from rtproof.lab.kernel_catalogue import list_kernels, preemption_of_config
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


def test_names_are_as_documented() -> None:
    names = [entry.name for entry in kernel_catalogue.catalogue()]
    pc = ["debian-6.1-rt", "debian-6.1", "debian-6.12-rt", "debian-6.12", "debian-5.10-rt", "debian-5.10"]
    assert names[:6] == pc
    assert sorted(names[6:]) == sorted(name + end for name in pc for end in ("-arm64", "-armhf"))


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
    said: list[str] = []
    kernel = kernel_catalogue.fetch_kernel("debian-6.1-rt", say=said.append)
    assert (kernel.arch, kernel.release) == ("x86_64", RELEASE)
    assert kernel.modules is not None
    assert [path.name for path in kernel.modules.rglob("*.ko")] == ["loop.ko"]
    assert kernel_catalogue.fetch_busybox("x86_64").read_bytes() == b"not really\n"
    assert "include ../linux-headers-6.1.0-50-common-rt/Makefile" in (
        (kernel_catalogue.kernel_headers("debian-6.1-rt") / "Makefile").read_text()
    )
    kept = {path.name for path in kernel.image.parents[1].rglob("*") if path.is_file()}
    assert kept == {f"vmlinuz-{RELEASE}", f"config-{RELEASE}", "loop.ko", "Makefile", "tool", "files.json"}
    assert said[-1] == f"unpacking linux-image-{RELEASE} 6.1.176-1"


@only_amd64
def test_a_second_fetch_needs_nothing_of_the_network_or_of_apt(
    published: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kernel_catalogue.fetch_kernel("debian-6.1-rt")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert kernel_catalogue.fetch_kernel("debian-6.1-rt") == first


@only_amd64
def test_the_newer_one_is_fetched_only_when_asked(published: Mirror) -> None:
    kernel_catalogue.fetch_kernel("debian-6.1-rt")
    add_kernel(published, "6.1.192-1", "6.1.0-56-rt-amd64")
    published.publish()
    assert kernel_catalogue.fetch_kernel("debian-6.1-rt").release == RELEASE
    assert kernel_catalogue.fetch_kernel("debian-6.1-rt", again=True).release == "6.1.0-56-rt-amd64"


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
    assert "debian-6.1-rt@6.1.192-1" in [each.name for each in kernel_catalogue.list_kernels()]


@only_amd64
def test_an_exact_version_that_the_cache_has_is_not_fetched_again(
    published: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = kernel_catalogue.fetch_kernel("debian-6.1-rt")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert kernel_catalogue.fetch_kernel("debian-6.1-rt@6.1.176-1") == first


@only_amd64
def test_a_version_that_the_mirror_lacks_is_answered_with_those_it_has(published: Mirror) -> None:
    add_kernel(published, "6.1.192-2", "6.1.0-56-rt-amd64", "bookworm-security")
    published.publish()
    with pytest.raises(UserError, match=r"in version 6\.1\.1-1 for amd64 .*there are: 6\.1\.\d+-\d, 6\.1.*--mirror"):
        kernel_catalogue.fetch_kernel("debian-6.1-rt@6.1.1-1")


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


@only_amd64
def test_without_its_headers_a_kernel_is_not_fetched(mirror: Mirror) -> None:
    mirror.add("bookworm", f"linux-image-{RELEASE}", "1", {})
    mirror.add("bookworm", "busybox-static", "1", {"usr/bin/busybox": b"merged\n"})
    mirror.publish()
    with pytest.raises(UnavailableError, match=f"cannot find linux-headers-{RELEASE} for amd64"):
        kernel_catalogue.fetch_kernel("debian-6.1-rt")
    assert kernel_catalogue.fetch_busybox("x86_64").read_bytes() == b"merged\n"
    assert kernel_catalogue.cached_kernel(kernel_catalogue.catalogue_entry("debian-6.1-rt")) is None


@only_amd64
def test_a_package_of_another_layout_is_said(mirror: Mirror) -> None:
    mirror.add("bookworm", "busybox-static", "1", {"opt/busybox": b""})
    mirror.publish()
    with pytest.raises(UserError, match="Debian's package has no bin/busybox"):
        kernel_catalogue.fetch_busybox("x86_64")


def test_an_unknown_name_is_answered_with_the_names() -> None:
    for ask in (
        kernel_catalogue.fetch_kernel,
        kernel_catalogue.resolve_kernel,
        kernel_catalogue.kernel_headers,
        kernel_catalogue.module_for_kernel,
    ):
        with pytest.raises(UserError, match=r"debian-6\.2.*debian-6\.1-rt, debian-6\.1, .*debian-6\.12-armhf"):
            ask("debian-6.2")
    with pytest.raises(UserError, match="no BusyBox for 'sparc'; there is one for: x86_64, aarch64, armv7"):
        kernel_catalogue.fetch_busybox("sparc")


def test_an_image_of_the_users_is_taken_as_it_is(tmp_path: Path) -> None:
    kernel = kernel_catalogue.resolve_kernel(str(own_image(tmp_path)))
    assert (kernel.release, kernel.modules) == ("6.9.1", None)


@pytest.mark.parametrize("place", [".", "boot"])
def test_modules_beside_an_image_are_found(tmp_path: Path, place: str) -> None:
    folder = tmp_path / "lib" / "modules" / "6.9.1"
    folder.mkdir(parents=True)
    assert kernel_catalogue.resolve_kernel(str(own_image(tmp_path / place))).modules == folder


def test_modules_may_be_elsewhere(tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere" / "6.9.1"
    folder.mkdir(parents=True)
    assert kernel_catalogue.resolve_kernel(str(own_image(tmp_path)), folder).modules == folder


def test_modules_are_not_given_for_a_name(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"debian-6\.1 has its own modules"):
        kernel_catalogue.resolve_kernel("debian-6.1", tmp_path)


def test_debian_itself_is_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one test with the real archive and an empty cache: BusyBox, which is small."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    try:
        Archive(("bookworm",), "amd64")
    except UserError as error:
        pytest.skip(f"this machine does not use Debian: {error}")
    try:
        program = kernel_catalogue.fetch_busybox("x86_64").read_bytes()
    except UnavailableError as error:
        pytest.skip(f"Debian cannot be reached from here: {error}")
    assert program.startswith(b"\x7fELF")
    assert b"BusyBox v" in program


@pytest.mark.parametrize("name", ["debian-6.1-rt", "debian-6.1"])
def test_debians_kernels_are_what_their_names_say(name: str) -> None:
    kernel = lab_kernels.fetched(name)
    assert kernel.arch == "x86_64"
    assert re.fullmatch(r"6\.1\.0-\d+-(rt-)?amd64", kernel.release)
    assert ("-rt-" in kernel.release) == name.endswith("-rt")
    assert kernel == open_kernel(kernel.image, kernel.modules)
    assert (kernel_catalogue.kernel_headers(name) / ".config").is_file()


# ``lab kernels`` and ``lab module``, with a mirror of our own.


@pytest.fixture
def published_cli(mirror: Mirror, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a mirror with one kernel."""
    add_kernel(mirror, "6.1.176-1", "6.1.0-50-rt-amd64")
    mirror.publish()
    monkeypatch.delenv("RTPROOF_MIRROR")
    return mirror.uri


@only_amd64
def test_kernels_are_fetched_and_listed(published_cli: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "kernels", "fetch", "--mirror", published_cli, "debian-6.1-rt"]) == 0
    fetched = capsys.readouterr()
    assert Path(fetched.out.strip()).name == "vmlinuz-6.1.0-50-rt-amd64"
    assert "fetching debian-6.1-rt\n" in fetched.err
    assert main(["lab", "kernels"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["debian-6.1-rt", "x86_64", "voluntary,", "or", "preempt=", "6.1.176-1", "0"] in rows
    assert ["debian-6.1-armhf", "armv7", "not", "RT", "no"] in rows


@only_amd64
def test_listing_can_fetch_first_and_speak_json(published_cli: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "kernels", "--json", "--mirror", published_cli, "--fetch", "debian-6.1-rt"]) == 0
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


@pytest.mark.parametrize(
    ("listed", "sentence"),
    [
        ('{"facts": {}, "files": {}}', r"files\.json is damaged, it has no config: rtproof lab kernels fetch --again"),
        ('{"facts": {"config": 1}, "files": {}}', r"files\.json is damaged, it has no config"),
        ('{"facts": {"config": "x"}, "files": {}}', r"debian-6\.1/x cannot be read: No such file"),
    ],
)
def test_a_kernel_whose_facts_were_damaged_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str, sentence: str
) -> None:
    monkeypatch.setattr(kernel_catalogue, "lab_cache", lambda: tmp_path)
    place = tmp_path / "kernels" / "debian-6.1"
    place.mkdir(parents=True)
    (place / "files.json").write_text(listed)
    with pytest.raises(UserError, match=sentence):
        kernel_catalogue.list_kernels()
    with pytest.raises(UserError, match="it has no image"):
        kernel_catalogue.opened_kernel(kernel_catalogue.catalogue_entry("debian-6.1"))


@pytest.mark.parametrize("listed", ['{"facts": [], "files": {}}', "[" * 100_000, '{"facts": 1, "files": {}}'])
def test_a_list_of_files_of_another_form_counts_as_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str
) -> None:
    monkeypatch.setattr(kernel_catalogue, "lab_cache", lambda: tmp_path)
    place = tmp_path / "kernels" / "debian-6.1"
    place.mkdir(parents=True)
    (place / "files.json").write_text(listed)
    assert kernel_catalogue.cached_kernel(kernel_catalogue.catalogue_entry("debian-6.1")) is None


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
