# SPDX-License-Identifier: Apache-2.0

from pathlib import Path

import pytest

from rtproof.core.errors import UserError
from rtproof.lab import debian_packages
from rtproof.lab.debian_packages import AptSource, machine_sources, sources_for

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


@pytest.fixture(autouse=True)
def no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian_packages, "KEYRINGS", ())
    monkeypatch.delenv("RTPROOF_MIRROR", raising=False)


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


def test_a_machine_without_apt_has_no_sources(tmp_path: Path) -> None:
    assert machine_sources(tmp_path / "etc" / "apt") == []


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


def test_what_only_calls_itself_stable_is_left_alone(tmp_path: Path) -> None:
    text = sources_for(("bookworm",), folder=configured(tmp_path, ONE_LINE))
    assert [line for line in text.splitlines() if line.startswith("URIs")] == ["URIs: http://one.test/debian"]
    assert "rusted" not in text


def test_a_machine_that_follows_stable_is_served(tmp_path: Path) -> None:
    assert "http://one.test/debian" in sources_for(
        ("bookworm",), folder=configured(tmp_path, "deb http://one.test/debian stable main\n")
    )


def test_debians_keyring_is_taken_where_a_source_names_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ring.gpg").touch()
    monkeypatch.setattr(debian_packages, "KEYRINGS", (tmp_path / "missing.gpg", tmp_path / "ring.gpg"))
    text = sources_for(("bookworm", "bookworm-security"), folder=configured(tmp_path, ONE_LINE))
    assert "Signed-By: /keys/a.gpg" in text
    assert f"Signed-By: {tmp_path}/ring.gpg" in text


@pytest.mark.parametrize("given", ["argument", "variable"])
def test_a_mirror_can_be_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    if given == "variable":
        monkeypatch.setenv("RTPROOF_MIRROR", "http://mine.test/debian/")
    mirror = "http://mine.test/debian/" if given == "argument" else ""
    text = sources_for(("bookworm", "bookworm-security"), mirror, configured(tmp_path, ONE_LINE))
    uris = [line for line in text.splitlines() if line.startswith("URIs")]
    assert uris == ["URIs: http://mine.test/debian", "URIs: http://mine.test/debian-security"]


def test_a_mirror_that_is_no_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'mine' is not the address of a mirror"):
        sources_for(("bookworm",), "mine", tmp_path)


def test_without_a_mirror_the_option_is_named(tmp_path: Path) -> None:
    foreign = configured(tmp_path, "deb http://one.test/ubuntu noble main\n")
    with pytest.raises(UserError, match="no mirror of Debian: give one with --mirror URL"):
        sources_for(("bookworm",), folder=foreign)
