# SPDX-License-Identifier: Apache-2.0
"""Loads between two hosts, for which two network namespaces stand, and what is said of a host that is gone."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from agent_process import PATIENCE_S, agent, eventually, needs_root, whole
from test_loads_of_agent import counter, idle

from rtproof.judge.analyse import analyse
from rtproof.record.contents import EndReason
from rtproof.record.reading import open_record
from rtproof.summary.summary_model import Severity

SECOND = 1_000_000_000
TARGET, OTHER = "10.251.0.1", "10.251.0.2"
PORT = 5567
CALM = ("--policy", "other", "--threads", "1", "--period", "10ms", "--duration")
BLOCK_KB = 60


class Host:
    """A network namespace, held by a process that sleeps."""

    def __init__(self) -> None:
        self.keeper = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "ip link set lo up; echo; exec sleep 3600"], stdout=-1
        )
        assert self.keeper.stdout
        assert self.keeper.stdout.readline() == b"\n"

    @property
    def prefix(self) -> tuple[str, ...]:
        return "nsenter", "--target", str(self.keeper.pid), "--net"

    def does(self, command: str) -> None:
        subprocess.run([*self.prefix, *command.split()], check=True)

    def received(self) -> int:
        """Bytes, as the kernel counts them."""
        lines = Path(f"/proc/{self.keeper.pid}/net/dev").read_text().splitlines()
        return int(next(line for line in lines if "cable:" in line).split(":")[1].split()[0])

    def starts(self, *arguments: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self.prefix, agent(), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def end(self) -> None:
        self.keeper.kill()
        self.keeper.communicate()


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    """The target and the other host, joined by a cable."""
    agent()
    for tool in ("unshare", "nsenter", "ip"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be had here")
    with ExitStack() as stack:
        target, other = Host(), Host()
        stack.callback(target.end)
        stack.callback(other.end)
        target.does(f"ip link add cable type veth peer name cable netns {other.keeper.pid}")
        for host, address in ((target, TARGET), (other, OTHER)):
            host.does(f"ip address add {address}/24 dev cable")
            host.does("ip link set cable up")
        yield target, other


@contextmanager
def listening(host: Host) -> Iterator[subprocess.Popen[str]]:
    """`rtproof-agent load comms:listen`, as a user starts it there."""
    with host.starts("load", f"comms:listen={PORT},pairs=2") as peer:
        sockets = Path(f"/proc/{host.keeper.pid}/net/tcp")
        try:
            assert eventually(lambda: f":{PORT:04X} 00000000:0000 0A" in sockets.read_text())
            yield peer
        finally:
            peer.terminate()
            peer.communicate(timeout=PATIENCE_S)


@pytest.mark.serial
@needs_root
def test_comms_moves_over_the_cable_what_it_counts(tmp_path: Path, hosts: tuple[Host, Host]) -> None:
    target, other = hosts
    with listening(other):
        words = ("--progress", "1s", *CALM, "600s", "--load", f"comms:peer={OTHER},port={PORT}")
        with target.starts("run", "-o", tmp_path / "r", *words) as one:
            assert one.stderr
            assert one.stderr.readline().startswith("progress ")
            assert eventually(lambda: idle(open_record(tmp_path / "r")) == [])
            one.terminate()
            said = one.communicate(timeout=PATIENCE_S)[1].splitlines()
            assert (one.returncode, [line for line in said if not line.startswith("progress ")]) == (0, [])
    moved = counter(whole(tmp_path / "r"), "comms")
    counted = int(moved.value[-1]) * 1000
    assert 0 < counted <= target.received()
    assert counted % (BLOCK_KB * 1000) == 0


@pytest.mark.serial
@needs_root
@pytest.mark.parametrize("load", [f"comms:peer={OTHER},port={PORT},pairs=2", f"pingflood:to={OTHER}"])
def test_a_host_that_vanishes_is_noticed(tmp_path: Path, hosts: tuple[Host, Host], load: str) -> None:
    target, other = hosts
    name, path = load.partition(":")[0], tmp_path / "r"
    with (
        listening(other),
        target.starts("run", "-o", path, "--progress", "100ms", *CALM, "600s", "--load", load) as one,
    ):
        assert one.stderr
        assert any("obtained=" in line and int(line.split("time_ns=")[1].split()[0]) > SECOND for line in one.stderr)
        other.does("ip link set cable down")
        one.communicate(timeout=PATIENCE_S)
        assert one.returncode == 0
    record = whole(path)
    assert record.end
    assert record.end.reason is EndReason.LOAD_DIED
    assert re.fullmatch(
        rf"load {name} died: .*{OTHER}.* does not answer .*any more: (Connection|Operation) timed out", record.end.text
    )
    assert "load-died" in {doubt.code for doubt in analyse(record).doubts if doubt.severity is Severity.INVALID}


@pytest.mark.serial
@needs_root
def test_a_flood_from_outside_and_its_rate_stand_behind_the_verdict(tmp_path: Path, hosts: tuple[Host, Host]) -> None:
    target, other = hosts
    words = ("run", "-o", tmp_path / "r", *CALM, "2s", "--load", f"pingflood:from={OTHER}")
    with other.starts("load", f"pingflood:to={TARGET}") as flood:
        with target.starts(*words) as one:
            assert (one.communicate(timeout=PATIENCE_S)[1], one.returncode) == ("", 0)
        flood.terminate()
    found = analyse(whole(tmp_path / "r"))
    assert {doubt.code for doubt in found.doubts if doubt.code.startswith("load")} == set()
    (valid,) = (text for label, text in found.verdict.sentences if label == "VALID FOR")
    assert re.search(rf"load \(pingflood; pingflood from {OTHER} at [1-9][0-9,]* requests/s\)", valid)


@needs_root
def test_a_flood_that_does_not_come_is_told_before_anything_is_measured(
    tmp_path: Path, hosts: tuple[Host, Host]
) -> None:
    words = ("run", "-o", tmp_path / "r", *CALM, "2s", "--load", f"pingflood:from={OTHER}")
    with hosts[0].starts(*words) as one:
        assert "no echo request arrives: start 'rtproof-agent load pingflood:to=" in one.communicate()[1]
    assert (one.returncode, list(tmp_path.iterdir())) == (2, [])
