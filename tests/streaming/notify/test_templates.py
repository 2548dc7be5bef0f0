"""Messages out of templates: what is shipped makes JSON of anything, and a mistake is said with file and line."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import get_args

import pytest

from streaming.config.notify import Webhook
from streaming.errors import SetupError
from streaming.notify.notification import Event, Links, Notification
from streaming.notify.templating import Template, context, message_key, samples, shipped
from tests.streaming.notify.said import of_rule

CRITICAL = of_rule("violation-stale-generation-accepted-4.3.1", "G-02")
HOSTILE = {
    **CRITICAL[0],
    "client_id": "<!channel> <http://evil|here> &amp;",
    "summary": "<!here> \x1b]0;x\x07 \ud800 " + "&" * 50_000,
}


def render(template: str, *notices: Notification) -> dict:
    made = Template(shipped(template)).render(
        context(notices, receiver="webhook/x", links=Links("https://docs/{anchor}", "https://page.example.org/"), secret="key")
    )
    assert made.isascii() or made.decode()
    return json.loads(made)


TEMPLATES = get_args(Webhook.model_fields["template"].annotation)


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize("state", [CRITICAL[0], HOSTILE])
def test_a_shipped_template_makes_json_of(name, state):
    assert render(name, Notification(Event.OPEN, state))
    assert render(name, Notification(Event.RESOLVED, {**state, "resolved_at": CRITICAL[-1]["resolved_at"]}, state))


def test_every_shipped_template_is_named():
    assert {path.name.removesuffix(".json.j2") for path in shipped("slack").parent.iterdir()} == set(TEMPLATES)


def test_slack_is_not_made_to_ring_everybody_or_to_show_links_by_a_clients_name():
    told = json.dumps(render("slack", Notification(Event.OPEN, HOSTILE)), ensure_ascii=False)
    assert "<!" not in told
    assert "<http://evil" not in told
    assert "&lt;!channel&gt;" in told
    assert "\x1b" not in told


def test_slack_takes_no_section_of_more_than_3000_characters():
    for attachment in render("slack", Notification(Event.OPEN, HOSTILE))["attachments"]:
        assert all(len(block.get("text", {}).get("text", "")) < 3000 for block in attachment["blocks"])


def test_slack_shows_ten_and_counts_the_rest():
    attachments = render("slack", *[Notification(Event.OPEN, CRITICAL[0])] * 14)["attachments"]
    assert len(attachments) == 11
    assert attachments[-1]["text"] == "and 4 more"


def test_pagerduty_opens_and_closes_the_same_incident():
    opened = render("pagerduty", Notification(Event.OPEN, CRITICAL[0]))
    resolved = render("pagerduty", Notification(Event.RESOLVED, CRITICAL[-1], CRITICAL[0]))
    assert (opened["event_action"], resolved["event_action"]) == ("trigger", "resolve")
    assert opened["dedup_key"] == resolved["dedup_key"] == CRITICAL[0]["id"]
    assert opened["routing_key"] == "key"
    assert opened["payload"]["severity"] == "critical"
    assert opened["links"] == [{"href": "https://docs/g-02-stale-generation-accepted", "text": "G-02"}]


def test_every_message_leads_to_its_finding_on_the_page():
    address = f"https://page.example.org/findings/{CRITICAL[0]['id']}"
    notice = Notification(Event.OPEN, CRITICAL[0])
    assert render("generic", notice)["notices"][0]["page_url"] == address
    assert f"<{address}|on the page>" in json.dumps(render("slack", notice))
    (card,) = render("teams", notice)["attachments"]
    assert card["content"]["body"][-1]["actions"] == [{"type": "Action.OpenUrl", "title": "Show on the page", "url": address}]
    assert render("pagerduty", notice)["client_url"] == address


def test_a_hostile_id_stays_within_the_address_and_what_the_notifier_found_itself_leads_to_what_the_monitor_sees():
    links = Links(page_url="https://page.example.org/sub")
    assert links.to_page({"rule": "G-01", "id": "G-01-../<x>?y"}) == "https://page.example.org/sub/findings/G-01-..%2F%3Cx%3E%3Fy"
    assert links.to_page({"rule": "V-05", "id": "V-05-1"}) == "https://page.example.org/sub/sight"
    assert Links().to_page({"rule": "G-01", "id": "x"}) is None


def test_the_secret_is_in_no_message_that_did_not_ask_for_it():
    assert "key" not in json.dumps(
        render("generic", Notification(Event.OPEN, CRITICAL[0]))["notices"][0]["finding"].get("secret", "")
    )
    assert "secret" not in render("generic", Notification(Event.OPEN, CRITICAL[0]))


def test_the_title_of_one_names_it_and_the_title_of_several_counts_them():
    group = CRITICAL[0]["group"]
    assert (
        render("generic", Notification(Event.OPEN, CRITICAL[0]))["title"]
        == f"critical in group {group} of lab: stale generation accepted"
    )
    both = render("generic", Notification(Event.OPEN, CRITICAL[0]), Notification(Event.RESOLVED, CRITICAL[-1], CRITICAL[0]))
    assert both["title"] == f"2 findings in group {group}: 1 critical, 1 resolved"
    assert both["status"] == "open"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n"a": {{ titel | tojson }} }', "line 2: 'titel' is undefined"),
        ("x\n{% if %}", "line 2: Expected an expression"),
        ('{"a":\n {{ title }} }', "does not produce JSON"),
        ("{{ notices[0].finding.__class__.__mro__ }}", "line 1: access to attribute '__class__'"),
        ("{{ 1 / 0 }}", "line 1: division by zero"),
        ("\n\n{{ notices[99].x }}", "line 3:"),
        ("{% include '/etc/passwd' %}", "line 1"),
    ],
)
def test_a_mistake_is_said_when_the_template_is_read(tmp_path, text, words):
    file = tmp_path / "mine.json.j2"
    file.write_text(text)
    with pytest.raises(SetupError) as refused:
        Template(file)
    assert str(file) in str(refused.value)
    assert words in str(refused.value)


def test_a_template_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(SetupError, match="cannot read the template"):
        Template(tmp_path / "none.j2")


def test_text_need_not_be_json_where_none_is_promised(tmp_path):
    file = tmp_path / "mine.txt.j2"
    file.write_text("{{ title }}")
    made = Template(file, makes_json=False).render(context(samples()[0], receiver="x", links=Links(), secret=None))
    assert made == b"error in group sample of sample: sample"


def test_a_message_has_the_same_key_in_every_run_and_another_for_other_news():
    one, other = Notification(Event.OPEN, CRITICAL[0]), Notification(Event.RESOLVED, CRITICAL[-1], CRITICAL[0])
    keys = [message_key("a", [one, other]), message_key("a", [other, one]), message_key("b", [one, other]), message_key("a", [one])]
    assert [left == right for left, right in pairwise(keys)] == [True, False, False]
