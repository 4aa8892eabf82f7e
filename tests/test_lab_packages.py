# SPDX-License-Identifier: Apache-2.0

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from debian_mirror import Mirror, add_kernel, mirror, signing_key

from rtproof.core.errors import UserError
from rtproof.lab import debian_packages
from rtproof.lab.debian_packages import Archive, Package, UnavailableError, sources_for
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
Types: deb deb-src
URIs: http://one.test/debian  http://two.test/debian/
# http://old.test/debian
Suites: trixie trixie-updates
Components: main non-free-firmware

Types: deb
URIs: http://one.test/debian-security
Suites: trixie-security
Components: main

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
deb [ arch=amd64 trusted=yes check-valid-until=no ] http://one.test/debian bookworm main contrib #
deb http://snapshot.test/archive/debian/20250520T000000Z bookworm main
# deb http://off.test/debian bookworm main
deb-src http://source.test/debian bookworm main
deb http://browser.test/linux/deb/ stable main
deb http://tool.test/debian bookworm tool
deb http://flat.test/packages ./
"""


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for the sources of a machine whose apt has these only."""
    if missing := [tool for tool in debian_packages.TOOLS if not shutil.which(tool)]:
        pytest.skip(f"there is no {', '.join(missing)}")
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (tmp_path / "apt.conf").write_text(f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{folder}";\n')
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    monkeypatch.setattr(debian_packages, "KEYRINGS", ())
    monkeypatch.delenv("RTPROOF_MIRROR", raising=False)
    return folder


def addresses(text: str) -> list[str]:
    return [line.removeprefix("URIs: ") for line in text.splitlines() if line.startswith("URIs")]


def test_other_suites_are_taken_from_the_same_mirrors(sources: Path) -> None:
    (sources / "debian.sources").write_text(DEB822)
    text = sources_for(("bookworm", "bookworm-security"))
    one, two, security = "http://one.test/debian", "http://two.test/debian", "http://one.test/debian-security"
    assert addresses(text) == [one, two, security]
    assert text.count("Suites: bookworm\n") == 2


def test_a_machine_without_security_suites_gets_them_beside_its_mirrors(sources: Path) -> None:
    """What only calls itself stable is left alone, as is what the owner of the machine trusts."""
    (sources / "lines.list").write_text(ONE_LINE)
    text = sources_for(("bookworm-security",))
    snapshot = "http://snapshot.test/archive/debian-security/20250520T000000Z"
    assert addresses(text) == ["http://one.test/debian-security", snapshot]
    assert "rusted" not in text
    assert text.count("Check-Valid-Until: no") == 1


def test_a_machine_that_names_no_mirror_is_told_so(sources: Path) -> None:
    (sources / "lines.list").write_text("deb http://tool.test/debian bookworm tool\n")
    with pytest.raises(UserError, match="name no mirror of Debian"):
        sources_for(("bookworm",))
