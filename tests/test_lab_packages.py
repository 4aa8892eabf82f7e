# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
from pathlib import Path

import pytest
from debian_mirror import Mirror, add_kernel, mirror, signing_key

from rtproof.core.errors import UserError
from rtproof.lab import debian_packages
from rtproof.lab.debian_packages import AptSource, Archive, Package, UnavailableError, machine_sources, sources_for
from rtproof.lab.kernel_catalogue import SUITES

__all__ = ["mirror", "signing_key"]


# Shortened from what apt-cache show prints.
SHOWN = """\
Package: linux-headers-6.12.95+deb12-rt-amd64
Source: linux
Version: 6.12.95-1~bpo12+1
Depends: linux-base (>= 4.12~), linux-headers-6.12.95+deb12-common-rt (= 6.12.95-1~bpo12+1), linux-image-6.12.95+deb12-rt-amd64 (= 6.12.95-1~bpo12+1) | linux-image-6.12.95+deb12-rt-amd64-unsigned (= 6.12.95-1~bpo12+1), linux-kbuild-6.12.95+deb12, gcc-12
Architecture: amd64
Size: 2022228
Description: Header files
 Size: no field of ours

N: There are 2 additional records.

Package: broken
"""  # noqa: E501


def newest(archive: Archive, pattern: str, folder: Path) -> list[tuple[Package, Path]]:
    return archive.collect(lambda found: [found.newest(pattern)], folder)


@pytest.fixture
def archive(mirror: Mirror) -> Archive:
    return Archive(SUITES["6.1"], debian_packages.debian_architecture())


def test_an_index_is_read() -> None:
    (package,) = debian_packages.parse_packages(SHOWN)
    assert (package.name, package.version) == ("linux-headers-6.12.95+deb12-rt-amd64", "6.12.95-1~bpo12+1")
    assert (package.architecture, package.size) == ("amd64", 2022228)
    assert package.depends == (
        "linux-base",
        "linux-headers-6.12.95+deb12-common-rt",
        "linux-image-6.12.95+deb12-rt-amd64",
        "linux-kbuild-6.12.95+deb12",
        "gcc-12",
    )


@pytest.mark.parametrize("missing", debian_packages.TOOLS)
def test_a_machine_without_apt_is_told_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for tool in set(debian_packages.TOOLS) - {missing}:
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=f"needs {missing}, which this machine does not have: .* --kernel FILE"):
        Archive(("bookworm",), "amd64", "http://mirror.test/debian")


def test_the_newest_of_all_suites_is_taken(mirror: Mirror, archive: Archive, tmp_path: Path) -> None:
    add_kernel(mirror, "6.1.99-1", "6.1.0-9-amd64")
    add_kernel(mirror, "6.1.112-1", "6.1.0-12-amd64", "bookworm-security")
    add_kernel(mirror, "6.1.113~rc1-1", "6.1.0-10-amd64")
    add_kernel(mirror, "6.1.113-1", "6.1.0-13-rt-amd64")
    mirror.publish()
    ((package, deb),) = newest(archive, r"linux-image-6\.1\.0-\d+-amd64", tmp_path)
    assert package.name == "linux-image-6.1.0-10-amd64"
    assert deb.stat().st_size == package.size


def test_of_one_version_the_signed_image_is_taken(mirror: Mirror, archive: Archive, tmp_path: Path) -> None:
    for ending in ("-unsigned", ""):
        mirror.add("bookworm", f"image{ending}", "1", {})
    mirror.publish()
    ((package, _),) = newest(archive, "image(-unsigned)?", tmp_path)
    assert package.name == "image"


def test_an_unsigned_image_is_taken_if_it_is_newer(mirror: Mirror, archive: Archive, tmp_path: Path) -> None:
    mirror.add("bookworm", "image", "1", {})
    mirror.add("bookworm", "image-unsigned", "2", {})
    mirror.publish()
    ((package, _),) = newest(archive, "image(-unsigned)?", tmp_path)
    assert package.version == "2"


def test_a_suite_that_is_being_synchronised_does_not_stop_the_other(
    mirror: Mirror, archive: Archive, tmp_path: Path
) -> None:
    mirror.add("bookworm", "tool", "1", {})
    mirror.add("bookworm-security", "tool", "2", {})
    mirror.publish()
    (index,) = Path(f"{mirror.folder}-security").rglob("Packages.gz")
    index.write_bytes(b"of another moment")
    ((package, _),) = newest(archive, "tool", tmp_path)
    assert package.version == "1"


def test_a_package_that_is_not_there_yet_is_asked_for_again(
    mirror: Mirror, archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.add("bookworm", "tool", "1", {})
    mirror.publish()
    plain, asked = Archive._update, []

    def update(self: Archive) -> None:
        plain(self)
        asked.append(1)
        if len(asked) == 1:
            mirror.add("bookworm", "late", "1", {})
            mirror.publish()

    monkeypatch.setattr(Archive, "_update", update)
    ((package, _),) = newest(archive, "late", tmp_path)
    assert (package.version, len(asked)) == ("1", 2)


def test_a_package_that_is_not_what_the_index_says_is_refused(mirror: Mirror, archive: Archive, tmp_path: Path) -> None:
    deb = mirror.add("bookworm", "tool", "1", {"bin/tool": b"good"})
    mirror.publish()
    data = bytearray(deb.read_bytes())
    data[-1] ^= 1
    deb.write_bytes(data)
    with pytest.raises(UnavailableError, match=r"tool=1 cannot be fetched: .*[Hh]ash"):
        newest(archive, "tool", tmp_path)


def test_an_index_signed_by_another_is_refused(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror.add("bookworm", "tool", "1", {})
    mirror.publish()
    (tmp_path / "none.gpg").touch()
    monkeypatch.setattr(debian_packages, "KEYRINGS", (tmp_path / "none.gpg",))
    with pytest.raises(
        UnavailableError, match=r"cannot find tool for .* in Debian's bookworm \(apt-get says: GPG error"
    ):
        newest(Archive(("bookworm",), debian_packages.debian_architecture()), "tool", tmp_path)


def test_what_the_archive_has_not_is_said_with_apts_words(archive: Archive, tmp_path: Path) -> None:
    with pytest.raises(
        UnavailableError, match=r"cannot find tool for .* in Debian's bookworm, .*\(apt-get says: .*bookworm"
    ):
        newest(archive, "tool", tmp_path)


def test_the_machines_apt_is_left_alone(mirror: Mirror, archive: Archive, tmp_path: Path) -> None:
    """Neither its indexes nor its hooks have a part in it; its ways to the network have."""
    mirror.add("bookworm", "tool", "1", {})
    mirror.publish()
    (tmp_path / "apt.conf").write_text(
        f'APT::Update::Post-Invoke {{ "touch {tmp_path}/hook"; }};\nAcquire::http::Proxy "http://proxy.test:3128";\n'
        'Acquire::AllowInsecureRepositories "true";\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
        newest(archive, "tool", tmp_path)
    (written,) = (tmp_path / "cache").rglob("apt.conf")
    assert 'Acquire::http::Proxy "http://proxy.test:3128";' in written.read_text()
    assert "Insecure" not in written.read_text()
    assert not (tmp_path / "hook").exists()
    dumped = subprocess.run(
        ["apt-config", "dump"],
        env={**os.environ, "APT_CONFIG": str(written)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert f'Dir::State "{written.parent}/state' in dumped
    assert "Post-Invoke" not in dumped


def test_a_package_that_cannot_be_unpacked_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.deb").write_text("no package")
    with pytest.raises(UserError, match=r"a\.deb cannot be unpacked: .*"):
        debian_packages.unpack_package(tmp_path / "a.deb", tmp_path / "all")


DEB822 = """\
# a comment
Types: deb deb-src
URIs: http://one.test/debian  http://two.test/debian/
# http://old.test/debian
Suites: trixie trixie-updates
Components: main non-free-firmware
Signed-By: /keys/debian.gpg

Types: deb
URIs: http://one.test/debian-security
Suites: trixie-security
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 abc
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
Enabled: no
URIs: http://off.test/debian
Suites: trixie
Components: main

Types: deb-src
URIs: http://source.test/debian
Suites: trixie
Components: main
"""

ONE_LINE = """\
deb [ arch=amd64 signed-by=/keys/a.gpg trusted=yes check-valid-until=no ] http://one.test/debian bookworm main contrib #
  deb http://one.test/debian-security bookworm-security main
# deb http://off.test/debian bookworm main
deb-src http://source.test/debian bookworm main
deb http://browser.test/linux/deb/ stable main
deb http://tool.test/debian bookworm tool
deb http://flat.test/packages ./
nonsense
"""


def configured(folder: Path, one_line: str = "", **parts: str) -> Path:
    (folder / "sources.list.d").mkdir()
    (folder / "sources.list").write_text(one_line)
    for name, text in parts.items():
        (folder / "sources.list.d" / name.replace("_", ".")).write_text(text)
    return folder


@pytest.fixture
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian_packages, "KEYRINGS", ())
    monkeypatch.delenv("RTPROOF_MIRROR", raising=False)


@pytest.mark.usefixtures("no_keyring")
def test_sources_in_stanzas_are_read(tmp_path: Path) -> None:
    one, two, security = machine_sources(configured(tmp_path, debian_sources=DEB822, old_sources_disabled=DEB822))
    assert one == AptSource(
        "http://one.test/debian",
        ("trixie", "trixie-updates"),
        ("main", "non-free-firmware"),
        (("signed-by", "/keys/debian.gpg"),),
    )
    assert two.uri == "http://two.test/debian/"
    assert dict(security.options)["signed-by"].splitlines()[-1] == " -----END PGP PUBLIC KEY BLOCK-----"


@pytest.mark.usefixtures("no_keyring")
def test_sources_on_lines_are_read(tmp_path: Path) -> None:
    found = machine_sources(configured(tmp_path, ONE_LINE, more_list="deb http://more.test/debian sid main\n"))
    assert found[0] == AptSource(
        "http://one.test/debian",
        ("bookworm",),
        ("main", "contrib"),
        (("signed-by", "/keys/a.gpg"), ("check-valid-until", "no")),
    )
    hosts = [source.uri.split("/")[2].partition(".")[0] for source in found]
    assert hosts == ["one", "one", "browser", "tool", "flat", "more"]


@pytest.mark.usefixtures("no_keyring")
def test_a_machine_without_apt_has_no_sources(tmp_path: Path) -> None:
    assert machine_sources(tmp_path / "etc" / "apt") == []


@pytest.mark.usefixtures("no_keyring")
def test_other_suites_are_taken_from_the_same_mirrors(tmp_path: Path) -> None:
    text = sources_for(("bookworm", "bookworm-security"), folder=configured(tmp_path, debian_sources=DEB822))
    again = tmp_path / "again"
    again.mkdir()
    read = machine_sources(configured(again, lab_sources=text))
    assert [(source.uri, source.suites) for source in read] == [
        ("http://one.test/debian", ("bookworm",)),
        ("http://two.test/debian/", ("bookworm",)),
        ("http://one.test/debian-security", ("bookworm-security",)),
    ]
    assert [source.options for source in read] == [source.options for source in machine_sources(tmp_path)]


@pytest.mark.usefixtures("no_keyring")
def test_what_only_calls_itself_stable_is_left_alone(tmp_path: Path) -> None:
    text = sources_for(("bookworm",), folder=configured(tmp_path, ONE_LINE))
    assert [line for line in text.splitlines() if line.startswith("URIs")] == ["URIs: http://one.test/debian"]
    assert "rusted" not in text


@pytest.mark.usefixtures("no_keyring")
def test_a_machine_that_follows_stable_is_served(tmp_path: Path) -> None:
    assert "http://one.test/debian" in sources_for(
        ("bookworm",), folder=configured(tmp_path, "deb http://one.test/debian stable main\n")
    )


@pytest.mark.usefixtures("no_keyring")
def test_debians_keyring_is_taken_where_a_source_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ring.gpg").touch()
    monkeypatch.setattr(debian_packages, "KEYRINGS", (tmp_path / "missing.gpg", tmp_path / "ring.gpg"))
    text = sources_for(("bookworm", "bookworm-security"), folder=configured(tmp_path, ONE_LINE))
    assert "Signed-By: /keys/a.gpg" in text
    assert f"Signed-By: {tmp_path}/ring.gpg" in text


@pytest.mark.parametrize("given", ["argument", "variable"])
@pytest.mark.usefixtures("no_keyring")
def test_a_mirror_can_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    if given == "variable":
        monkeypatch.setenv("RTPROOF_MIRROR", "http://mine.test/debian/")
    mirror = "http://mine.test/debian/" if given == "argument" else ""
    text = sources_for(("bookworm", "bookworm-security"), mirror, configured(tmp_path, ONE_LINE))
    uris = [line for line in text.splitlines() if line.startswith("URIs")]
    assert uris == ["URIs: http://mine.test/debian", "URIs: http://mine.test/debian-security"]


@pytest.mark.usefixtures("no_keyring")
def test_a_machine_without_security_suites_gets_them_beside_its_mirror(tmp_path: Path) -> None:
    line = "deb http://one.test/debian bookworm main"
    text = sources_for(("bookworm", "bookworm-security"), folder=configured(tmp_path, line))
    rows = [text_line for text_line in text.splitlines() if text_line.startswith(("URIs", "Suites"))]
    assert rows == [
        "URIs: http://one.test/debian",
        "Suites: bookworm",
        "URIs: http://one.test/debian-security",
        "Suites: bookworm-security",
    ]


@pytest.mark.usefixtures("no_keyring")
def test_a_snapshot_has_its_security_suites_elsewhere_and_may_be_old() -> None:
    text = sources_for(("bookworm-security",), "http://snapshot.test/archive/debian/20250101T000000Z/")
    assert "URIs: http://snapshot.test/archive/debian-security/20250101T000000Z\n" in text
    assert "Check-Valid-Until: no\n" in text


@pytest.mark.usefixtures("no_keyring")
def test_a_mirror_that_is_no_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'mine' is not the address of a mirror"):
        sources_for(("bookworm",), "mine", tmp_path)


@pytest.mark.usefixtures("no_keyring")
def test_without_a_mirror_the_option_is_named(tmp_path: Path) -> None:
    foreign = configured(tmp_path, "deb http://one.test/ubuntu noble main\n")
    with pytest.raises(UserError, match="no mirror of Debian: give one with --mirror URL"):
        sources_for(("bookworm",), folder=foreign)
