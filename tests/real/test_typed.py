"""The documents followed to the letter on a Kafka with TLS, SCRAM and rights denied by default; :mod:`tests.real.typed` types them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.real.typed import ELSEWHERE, ROOT, SERVICES, commands_of

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

#: In the order of a first installation: who may do what, the topics, the taps, and what needs both.
DOCUMENTS = [f"docs/{name}.md" for name in ("rights", "deploying", "tap", "running", "alerting", "metrics")]
APART = ["unshare", "--map-root-user", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


def can_be_apart() -> bool:
    try:
        return subprocess.run([*APART, "ip", "link", "set", "lo", "up"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.long
@pytest.mark.skipif(not can_be_apart(), reason="needs unshare and ip, and a kernel that lets this user make namespaces")
def test_every_command_of_the_documents_works_as_it_stands_on_a_kafka_that_denies_by_default():
    done = subprocess.run(
        [*APART, sys.executable, "-m", "tests.real.typed", *DOCUMENTS],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        check=True,
        timeout=840,
    )
    outcomes = [tuple(outcome) for outcome in json.loads(done.stdout)]
    assert [said for said in outcomes if said[2] not in {"as expected", *ELSEWHERE.values()}] == []
    typed = [(document, command) for document, command, _ in outcomes if command not in SERVICES]
    assert typed == [(document, command) for document in DOCUMENTS for command in commands_of(ROOT / document)]
    assert {command for _, command, _ in outcomes} >= set(SERVICES)


def test_what_is_not_run_here_is_run_by_a_test_that_exists():
    assert {file for file in ELSEWHERE.values() if not (ROOT / file).exists()} == set()
