"""A notifier that gives no sign of life any more: V-12."""

from __future__ import annotations

from coordinator_model.finding import Finding, Status
from streaming.engine.notifier_watch import NotifierWatch

SECOND_US = 1_000_000
BEGIN_US = 1_800_000_000 * SECOND_US


def at(second: float) -> int:
    return BEGIN_US + int(second * SECOND_US)


def seen(watch: NotifierWatch, until_s: int, *, signs_until_s: int, begin_s: int = 0) -> list[tuple[Finding, int]]:
    """What is found, and in which second, while a sign comes every 5 s until a second."""
    found = []
    for second in range(begin_s, until_s):
        signs = {"web1": at(second)} if second % 5 == 0 and second <= signs_until_s else {}
        found += [(one, second) for one in watch.observe(signs, at(second))]
    return found


def test_V_12_names_the_host_within_20_s_and_is_over_when_the_notifier_is_back() -> None:
    watch = NotifierWatch("prod", [])
    [(finding, second)] = seen(watch, 60, signs_until_s=20)
    assert (finding.rule, finding.status, second) == ("V-12", Status.OPEN, 36)
    assert finding.summary == (
        "The notifier on host web1 has given no sign of life since 08:00:20: it has ended, hangs, or cannot reach Kafka. Its receivers are "
        "sent nothing."
    )
    [(over, second)] = seen(watch, 62, signs_until_s=60, begin_s=60)
    assert (over.id, over.status, second) == (finding.id, Status.RESOLVED, 60)


def test_V_12_is_recognised_by_a_job_that_was_started_again() -> None:
    [(finding, _)] = seen(NotifierWatch("prod", []), 60, signs_until_s=20)
    again = NotifierWatch("prod", [finding.as_json()])
    assert again.observe({"web1": at(20)}, at(100)) == []
    assert again.observe({}, at(114)) == []
    over = again.observe({"web1": at(115)}, at(115))
    assert [(one.id, one.status) for one in over] == [(finding.id, Status.RESOLVED)]


def test_V_12_says_nothing_of_a_time_in_which_kafka_could_not_be_read() -> None:
    watch = NotifierWatch("prod", [])
    assert seen(watch, 20, signs_until_s=15) == []
    for second in range(20, 100):
        watch.pause(at(second))
    assert watch.observe({"web1": at(101)}, at(101)) == []


def test_V_12_does_not_miss_a_notifier_that_was_gone_for_a_day() -> None:
    watch = NotifierWatch("prod", [])
    assert watch.observe({"old": at(0)}, at(2 * 86_400)) == []
    assert watch.observe({}, at(2 * 86_400 + 100)) == []
    watch.observe({"web1": at(2 * 86_400)}, at(2 * 86_400))
    assert [one.status for one in watch.observe({}, at(2 * 86_400 + 16))] == [Status.OPEN]
    assert [one.status for one in watch.observe({}, at(3 * 86_400 + 17))] == [Status.RESOLVED]
    assert watch.observe({}, at(4 * 86_400)) == []
