# SPDX-License-Identifier: Apache-2.0
"""Names of the lab's kernels where the target qemu takes files."""

from pathlib import Path

import pytest

from rtproof import profiles
from rtproof.cli.main import main
from rtproof.core.errors import UserError
from rtproof.experiment import profile_setup, run_request
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
OURS = "/cache/debian-6.1/rtproof.ko"


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("name", "inserted"),
    [
        ("akamina", f"{OURS},veth"),
        ("bootlin-gpio", f"{OURS},veth"),
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
    asked = run_request.ProfileRequest("bootlin-gpio", (("in", "5"),), (), {"duration": "5s"})
    (cell,) = profile_setup.requested_profile(asked, in_guest=True).cells
    assert run_options(cell)["probe"] == "gpio:chip=rtproof-loop,in=5,out=6,edge=both"
    assert cell.loads == ("doload", "mmap")
    with pytest.raises(UserError, match=r"can't know chip, .*; 'rtproof lab profile bootlin-gpio' measures in a guest"):
        profile_setup.requested_profile(asked)


def test_the_users_load_comes_before_that_of_a_guest() -> None:
    asked = run_request.ProfileRequest("bootlin-gpio", (), (), {"duration": "5s", "load": ("dd",)})
    assert [cell.loads for cell in profile_setup.requested_profile(asked, in_guest=True).cells] == [("dd",)]


def test_files_and_other_targets_are_left_alone(tmp_path: Path) -> None:
    image = tmp_path / "bzImage"
    image.touch()
    for target, options in (("qemu", {"kernel": str(image)}), ("qemu", {}), ("local", {"kernel": "debian-6.1"})):
        assert with_lab_kernel(target, options, "kernel") == options


def test_a_wrong_name_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--target", "qemu", "--target-option", "kernel=debian-5"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "debian-6.1-rt" in said
