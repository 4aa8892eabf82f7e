# SPDX-License-Identifier: Apache-2.0
"""``campaign.json`` gives back what was written, to the type of every number, and nothing but that."""

import errno
import json
from dataclasses import replace
from pathlib import Path

import pytest

from rtproof import articles, profiles
from rtproof.core.errors import UserError
from rtproof.experiment import campaign_folder
from rtproof.experiment.campaign_folder import StoredCampaign, StoredCellEnd
from rtproof.report.pages.campaign_outcomes import OtherToolResult

CELLS = (
    StoredCellEnd("a", "0" * 64, 1, ("no module",), "it was interrupted", True, ("cells/a.csv",)),
    StoredCellEnd("b", failure="é"),
)
GIVEN = (OtherToolResult("their latency", "latency", 3, 1, 2.5, None, ("a note",)),)


def campaign(name: str = "toradex") -> StoredCampaign:
    profile = profiles.load(name)
    return StoredCampaign(
        "rtproof run", profile, articles.load(profile.article), "a board", (0.5, 0.99999), CELLS, GIVEN
    )


@pytest.mark.parametrize("name", profiles.names())
def test_every_profile_and_article_comes_back(name: str, tmp_path: Path) -> None:
    wrote = campaign(name)
    campaign_folder.write_campaign_file(tmp_path, wrote)
    found = campaign_folder.read_campaign_file(tmp_path)
    assert found == wrote
    values = [
        [(type(figure.value), type(figure.step)) for row in each.article.rows for figure in row.figures.values()]
        for each in (found, wrote)
    ]
    assert values[0] == values[1]
    assert values[0]
    assert [repr(each) for each in found.given] == [repr(each) for each in wrote.given]


def test_the_last_one_wins_and_nothing_else_is_left(tmp_path: Path) -> None:
    for count in (0, 1, 2):
        campaign_folder.write_campaign_file(tmp_path, replace(campaign(), cells=CELLS[:count]))
        assert campaign_folder.read_campaign_file(tmp_path).cells == CELLS[:count]
    assert [path.name for path in tmp_path.iterdir()] == ["campaign.json"]


def test_bytes_that_are_no_text_cost_nothing(tmp_path: Path) -> None:
    """As in a command that was typed in another encoding; the page writes them as ? too."""
    campaign_folder.write_campaign_file(tmp_path, replace(campaign(), command="rtproof \udce4"))
    assert campaign_folder.read_campaign_file(tmp_path).command == "rtproof ?"


def test_white_space_tells_nothing_and_every_word_does(tmp_path: Path) -> None:
    campaign_folder.write_campaign_file(tmp_path, campaign())
    place = tmp_path / "campaign.json"
    told = json.loads(place.read_text())
    place.write_text(json.dumps(told, ensure_ascii=False))
    assert campaign_folder.read_campaign_file(tmp_path) == campaign()
    told["campaign"]["cells"][0]["failure"] = ""
    place.write_text(json.dumps(told))
    with pytest.raises(UserError, match="no longer what the run wrote"):
        campaign_folder.read_campaign_file(tmp_path)


def test_a_full_disk_leaves_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign_folder.write_campaign_file(tmp_path, campaign())

    def full(_opened: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("rtproof.core.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        campaign_folder.write_campaign_file(tmp_path, replace(campaign(), cells=()))
    assert campaign_folder.read_campaign_file(tmp_path).cells == CELLS


def test_a_digest_is_of_the_record_and_of_what_the_host_knew(tmp_path: Path) -> None:
    found = set()
    for record, info in ((b"a", b"b"), (b"c", b"b"), (b"a", b"c")):
        (tmp_path / "run.rtrec").write_bytes(record)
        (tmp_path / "run.json").write_bytes(info)
        found.add(campaign_folder.run_digest(tmp_path))
    assert len(found) == 3
    (tmp_path / "run.json").unlink()
    with pytest.raises(UserError, match=r"cannot read .*run.json: No such file"):
        campaign_folder.run_digest(tmp_path)
