# SPDX-License-Identifier: Apache-2.0

import os
import subprocess
from pathlib import Path

import pytest
from debian_mirror import Mirror, add_kernel, mirror, signing_key

from rtproof.lab import debian_packages
from rtproof.lab.debian_packages import AptSource, Archive, Package, UnavailableError, machine_sources, sources_for
from rtproof.lab.kernel_catalogue import SUITES

__all__ = ["mirror", "signing_key"]


def newest(archive: Archive, pattern: str, folder: Path) -> list[tuple[Package, Path]]:
    return archive.collect(lambda found: [found.newest(pattern)], folder)


@pytest.fixture
def archive(mirror: Mirror) -> Archive:
    return Archive(SUITES["6.1"], debian_packages.debian_architecture())


def test_the_newest_of_all_suites_is_taken(mirror: Mirror, archive: Archive, tmp_path: Path) -> None:
    add_kernel(mirror, "6.1.99-1", "6.1.0-9-amd64")
    add_kernel(mirror, "6.1.112-1", "6.1.0-12-amd64", "bookworm-security")
    add_kernel(mirror, "6.1.113~rc1-1", "6.1.0-10-amd64")
    add_kernel(mirror, "6.1.113-1", "6.1.0-13-rt-amd64")
    mirror.publish()
    ((package, deb),) = newest(archive, r"linux-image-6\.1\.0-\d+-amd64", tmp_path)
    assert package.name == "linux-image-6.1.0-10-amd64"
    assert deb.stat().st_size == package.size


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
def test_sources_on_lines_are_read(tmp_path: Path) -> None:
    found = machine_sources(configured(tmp_path, ONE_LINE, more_list="deb http://more.test/debian sid main\n"))
    assert found[0] == AptSource(
        "http://one.test/debian",
        "bookworm",
        (("signed-by", "/keys/a.gpg"), ("check-valid-until", "no")),
    )
    hosts = [source.uri.split("/")[2].partition(".")[0] for source in found]
    assert hosts == ["one", "one", "browser", "more"]


@pytest.mark.usefixtures("no_keyring")
def test_other_suites_are_taken_from_the_same_mirrors(tmp_path: Path) -> None:
    text = sources_for(("bookworm", "bookworm-security"), folder=configured(tmp_path, debian_sources=DEB822))
    again = tmp_path / "again"
    again.mkdir()
    read = machine_sources(configured(again, lab_sources=text))
    assert [(source.uri, source.suite) for source in read] == [
        ("http://one.test/debian", "bookworm"),
        ("http://two.test/debian", "bookworm"),
        ("http://one.test/debian-security", "bookworm-security"),
    ]
    assert {source.options for source in read} == {source.options for source in machine_sources(tmp_path)}


@pytest.mark.usefixtures("no_keyring")
def test_what_only_calls_itself_stable_is_left_alone(tmp_path: Path) -> None:
    text = sources_for(("bookworm",), folder=configured(tmp_path, ONE_LINE))
    assert [line for line in text.splitlines() if line.startswith("URIs")] == ["URIs: http://one.test/debian"]
    assert "rusted" not in text
