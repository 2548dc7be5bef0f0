"""``rebalance-monitor protocol``: the rows that an argument means."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from coordinator_model.groups.protocol.classic import TABLE as CLASSIC
from coordinator_model.groups.protocol.epochs import TABLE as EPOCHS
from streaming.cli import app

ROWS = (*CLASSIC.rows, *EPOCHS.rows)


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["protocol", *arguments], env={"COLUMNS": "80"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def listed(output: str) -> list[str]:
    names = {row.name for row in ROWS}
    return [line.split()[0] for line in output.splitlines() if line.split()[:1] and line.split()[0] in names]


def test_without_an_argument_it_prints_the_whole_table() -> None:
    status, output, _ = run()
    assert (status, sorted(listed(output))) == (0, sorted(row.name for row in ROWS))


def test_an_api_gives_its_rows_and_those_of_any_api() -> None:
    status, output, _ = run("heartbeat")
    in_consumer_groups = [row.name for row in EPOCHS.rows if row.name[0] == "K"]
    assert (status, listed(output)) == (0, [row.name for row in ROWS if row.name[0] in "HX"] + in_consumer_groups)
    assert "H10   ILLEGAL_GENERATION             PKS     member renamed     other none" in output
    assert "fenced          an id, with an instance id that another member holds" in output


@pytest.mark.parametrize(
    ("api", "letter"), [("ConsumerGroupHeartbeat", "U"), ("sharegroupheartbeat", "W"), ("StreamsGroupHeartbeat", "Z")]
)
def test_an_api_of_the_newer_groups_gives_its_rows(api: str, letter: str) -> None:
    status, output, _ = run(api)
    assert (status, listed(output)) == (0, [row.name for row in EPOCHS.rows if row.name[0] == letter])
    assert "outsider        the id of no member, with no instance id or one that no member holds" in output
    assert "PreparingRebalance" not in output


def test_an_api_of_both_kinds_of_groups_gives_the_rows_of_both() -> None:
    status, output, _ = run("OffsetCommit")
    assert (status, listed(output)) == (0, [row.name for row in ROWS if row.name[0] in "CXV"])
    assert output.index("The protocol of classic groups") < output.index("The protocol of consumer, share and Streams groups")


@pytest.mark.parametrize("error", ["ILLEGAL_GENERATION", "22"])
def test_an_error_gives_the_rows_of_all_apis_that_answer_it(error: str) -> None:
    status, output, _ = run(error)
    assert (status, listed(output)) == (0, [row.name for row in ROWS if 22 in row.answers])
    assert "Heartbeat" in output
    assert "LeaveGroup" not in output


def test_a_row_is_printed_alone() -> None:
    status, output, _ = run("j16")
    assert (status, listed(output)) == (0, ["J16"])
    assert "KIP-394" in output


def test_what_the_table_does_not_have_is_an_error_that_names_the_apis() -> None:
    status, output, said = run("Fetch")
    assert (status, output) == (2, "")
    assert said.startswith("error: Fetch is no API of the tables (JoinGroup, SyncGroup, Heartbeat,")
