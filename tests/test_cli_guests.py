# SPDX-License-Identifier: Apache-2.0
"""Names of the lab's kernels where the target qemu takes files, and what a profile needs in a guest."""

from pathlib import Path

import pytest

from rtproof import profiles
from rtproof.core.errors import UserError
from rtproof.experiment import profile_campaign, run_request
from rtproof.experiment.guest_runner import target_options_for_profile, with_lab_kernel
from rtproof.lab import kernel_catalogue
from rtproof.profiles import run_options
from rtproof.vm.kernel_files import Kernel

FETCHED = Kernel("x86_64", Path("/cache/vmlinuz"), Path("/cache/lib/modules/6.1"), "6.1", "abc")


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_catalogue, "resolve_kernel", lambda name, folder, say: FETCHED)
    monkeypatch.setattr(kernel_catalogue, "module_for_kernel", lambda name, say: Path(f"/cache/{name}/rtproof.ko"))


@pytest.mark.usefixtures("catalogue")
def test_a_name_becomes_the_files_of_the_kernel() -> None:
    found = with_lab_kernel("qemu", {"kernel": "debian-6.1", "cpus": "1"}, "timer")
    assert found == {"kernel": "/cache/vmlinuz", "modules": "/cache/lib/modules/6.1", "cpus": "1"}


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("options", "probe", "inserted"),
    [
        ({}, "kernel", "/cache/debian-6.1/rtproof.ko"),
        ({}, "kernel:key=1", "/cache/debian-6.1/rtproof.ko"),
        ({"insert": "loop,rtproof"}, "", "loop,/cache/debian-6.1/rtproof.ko"),
        ({"insert": "loop"}, "kernel", "loop"),
    ],
)
def test_our_module_is_built_where_it_is_wanted(options: dict[str, str], probe: str, inserted: str) -> None:
    assert with_lab_kernel("qemu", {"kernel": "debian-6.1", **options}, probe)["insert"] == inserted


HAS = ("veth", "i2c-piix4", "lm75")
OURS_CLI_GUESTS = "/cache/debian-6.1/rtproof.ko"


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("name", "inserted"),
    [
        ("akamina", f"{OURS_CLI_GUESTS},veth"),
        ("bootlin-gpio", f"{OURS_CLI_GUESTS},veth"),
        ("simple-rt-app", "veth,i2c-piix4,lm75"),
        ("toradex", "veth"),
    ],
)
def test_a_guest_gets_what_a_profile_needs(name: str, inserted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rtproof.experiment.guest_runner.has_module", lambda kernel, name: name in HAS)
    profile = profiles.load(name)
    options = target_options_for_profile("qemu", {"kernel": "debian-6.1"}, profile)
    assert options["insert"] == inserted
    assert options.get("setup", "").splitlines() == list(profile.guest.setup)
    own = {"kernel": "debian-6.1", "insert": "loop", "setup": "true"}
    told = target_options_for_profile("qemu", own, profile)
    assert (told["insert"], told["setup"]) == ("loop", "true")
    assert target_options_for_profile("local", own, profile) == own


def test_in_a_guest_something_stands_for_what_only_the_user_could_name() -> None:
    asked = run_request.RunRequest(
        (), "qemu", profile="bootlin-gpio", settings=(("in", "5"),), options={"duration": "5s"}
    )
    (cell,) = profile_campaign.requested_profile(asked, in_guest=True).cells
    assert run_options(cell)["probe"] == "gpio:chip=rtproof-loop,in=5,out=6,edge=both"
    assert cell.loads == ("doload:messages=11000,entries=7000", "mmap:rate=200")
    with pytest.raises(UserError, match=r"can't know chip, .*; 'rtproof lab profile bootlin-gpio' measures in a guest"):
        profile_campaign.requested_profile(asked)
