# SPDX-License-Identifier: Apache-2.0
"""A mirror of Debian in a folder: made and signed here, with packages of a few bytes, for the real apt."""

import gzip
import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rtproof.lab import debian_packages

TOOLS = (*debian_packages.TOOLS, "gpg", "gpgconf")


class Mirror:
    """Its address is ``uri``; a suite is as of its last ``publish``."""

    def __init__(self, folder: Path, key: Path) -> None:
        self.folder = folder
        self.uri = f"file:{folder}"
        self._key = key
        self._indexes: dict[str, list[str]] = {}

    def add(self, suite: str, name: str, version: str, files: dict[str, bytes], depends: str = "") -> Path:
        """A package in a suite, for this machine's architecture. What is in usr/bin can be executed."""
        base = self.folder if not suite.endswith("-security") else self.folder.with_name(f"{self.folder.name}-security")
        tree = Path(tempfile.mkdtemp(dir=self._key))
        for path, content in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(content)
            (tree / path).chmod(0o755 if path.startswith("usr/bin/") else 0o644)
        control = [f"Package: {name}", f"Version: {version}", f"Architecture: {debian_packages.debian_architecture()}"]
        control += [
            "Maintainer: nobody <nobody@localhost>",
            "Description: none",
            *([f"Depends: {depends}"] * bool(depends)),
        ]
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN" / "control").write_text("\n".join([*control, ""]))
        deb = base / "pool" / f"{name}_{version}.deb"
        deb.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, deb], check=True, capture_output=True)
        size, digest = deb.stat().st_size, hashlib.sha256(deb.read_bytes()).hexdigest()
        stanza = [*control, f"Filename: pool/{deb.name}", f"Size: {size}", f"SHA256: {digest}", ""]
        self._indexes.setdefault(f"{base}/dists/{suite}", []).append("\n".join(stanza))
        return deb

    def publish(self) -> None:
        """Write and sign the index of every suite."""
        for place, stanzas in self._indexes.items():
            index = Path(place, "main", f"binary-{debian_packages.debian_architecture()}", "Packages.gz")
            index.parent.mkdir(parents=True, exist_ok=True)
            index.write_bytes(gzip.compress("\n".join(stanzas).encode(), mtime=0))
            self._sign(Path(place), index)

    def _sign(self, place: Path, index: Path) -> None:
        data = index.read_bytes()
        rows = [
            f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}"
            for name, content in (
                (str(index.relative_to(place)), data),
                (str(index.with_suffix("").relative_to(place)), gzip.decompress(data)),
            )
        ]
        release = [
            f"Suite: {place.name}",
            f"Codename: {place.name}",
            f"Architectures: {debian_packages.debian_architecture()}",
        ]
        release += ["Components: main", "Date: Sat, 04 Jan 2025 10:00:00 UTC", "SHA256:", *rows, ""]
        (place / "Release").write_text("\n".join(release))
        run = [
            "gpg",
            "--homedir",
            str(self._key),
            "--batch",
            "--yes",
            "--clearsign",
            "--output",
            str(place / "InRelease"),
        ]
        subprocess.run([*run, str(place / "Release")], check=True, capture_output=True)


@pytest.fixture(scope="module")
def signing_key() -> Iterator[Path]:
    """A key that signs for the mirrors of a test module; in a short path, because gpg's agent listens in it."""
    missing = [tool for tool in TOOLS if not shutil.which(tool)]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")
    home = Path(tempfile.mkdtemp(prefix="key", dir="/tmp"))
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet"]
    try:
        for command in (
            ["--passphrase", "", "--quick-generate-key", "mirror@localhost", "ed25519", "sign", "never"],
            ["--export", "--output", str(home / "archive.gpg")],
        ):
            subprocess.run([*gpg, *command], check=True, capture_output=True)
        yield home
    finally:
        subprocess.run(["gpgconf", "--homedir", home, "--kill", "all"], check=False, capture_output=True)
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def mirror(tmp_path: Path, signing_key: Path, monkeypatch: pytest.MonkeyPatch) -> Mirror:
    """An empty mirror that the lab trusts and takes for Debian's, and an empty cache."""
    (tmp_path / "debian").mkdir()
    found = Mirror(tmp_path / "debian", signing_key)
    monkeypatch.setattr(debian_packages, "KEYRINGS", (signing_key / "archive.gpg",))
    monkeypatch.setenv("RTPROOF_MIRROR", found.uri)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return found


def image(release: str) -> bytes:
    """The first bytes of a bzImage (Documentation/arch/x86/boot.rst), as much as tells what it is."""
    head = bytearray(0x400)
    head[0x202:0x206] = b"HdrS"
    struct.pack_into("<H", head, 0x20E, 0x100)
    head[0x300 : 0x300 + len(release) + 3] = f"{release} #1".encode()
    return bytes(head)


def add_kernel(mirror: Mirror, version: str, release: str, suite: str = "bookworm", ending: str = "") -> None:
    """The packages of a kernel, as Debian cuts them."""
    series, flavour, _ = release.removesuffix("-amd64").partition("-rt")
    common = f"linux-headers-{series}-common{flavour}"
    files = {
        f"boot/vmlinuz-{release}": image(release),
        f"boot/config-{release}": b"CONFIG_PREEMPT_VOLUNTARY=y\nCONFIG_PREEMPT_DYNAMIC=y\n",
        f"boot/System.map-{release}": b"none\n",
        f"lib/modules/{release}/kernel/loop.ko": f"\0vermagic={release} SMP \0".encode(),
        "usr/share/doc/readme": b"not kept\n",
    }
    mirror.add(suite, f"linux-image-{release}{ending}", version, files)
    headers = {f"usr/src/linux-headers-{release}/Makefile": f"include /usr/src/{common}/Makefile\n".encode()}
    depends = f"{common} (= {version}), linux-kbuild-6.1 (>= {version}), gcc-12"
    mirror.add(suite, f"linux-headers-{release}", version, headers, depends)
    mirror.add(suite, common, version, {f"usr/src/{common}/Makefile": b"all:\n\t@echo made\n"})
    mirror.add(suite, "linux-kbuild-6.1", version, {"usr/lib/linux-kbuild-6.1/scripts/tool": b"#!/bin/sh\n"})
    mirror.add(suite, "busybox-static", version, {"bin/busybox": b"not really\n"})


only_amd64 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the packages are for this machine: amd64 only")
