"""Generate the rule catalogue, the protocol and the state diagram as Markdown, from the model's own tables and docstrings.

A second description of the same thing soon differs from the first, so this module holds no facts about rules or states.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from inspect import cleandoc, getsource
from types import ModuleType
from typing import Final, NamedTuple

from coordinator_model.events import State
from coordinator_model.groups.classic import state
from coordinator_model.groups.classic.state import Observation, after
from coordinator_model.groups.protocol import classic as protocol
from coordinator_model.groups.protocol import epochs as epochs_protocol
from coordinator_model.groups.protocol.table import Row, Table
from coordinator_model.known_defects import KNOWN_DEFECTS, Defect
from coordinator_model.rules import CATALOGUE, MODULES, Rule, TimerRule
from coordinator_model.wire import API_NAMES

#: Letter → (title, description), in the order of the catalogue.
FAMILIES: Final[dict[str, tuple[str, str]]] = {
    "G": ("Generations", "Whether members use, and the coordinator accepts, the generation that the group is at."),
    "M": ("Member identity", "Whether a member id is known, used by its owner, and issued as it should be."),
    "S": ("Static membership", "Whether a group.instance.id has one owner, and its restarts cost nothing (KIP-345)."),
    "R": ("Rebalances", "Whether rebalances end, who keeps the others waiting, and who starts them again and again."),
    "T": ("Sessions and time", "Whether members are heard from in time, and the coordinator answers in time."),
    "A": (
        "Assignments",
        "Whether the leader gives every partition to one member that wants it, and every member gets what it was given.",
    ),
    "P": ("Protocol consistency", "Whether requests and answers are what the protocol allows at that point."),
    "O": ("Offsets", "Whether progress is saved, by its owner, and forwards."),
    "C": ("Coordinator faults", "Whether there is one coordinator, it stays, and it answers."),
    "E": ("Epochs", "Whether members of the newer group types (KIP-848) and the coordinator agree on epochs and partitions."),
    "V": ("The monitor's own view", "What the monitor could not see or read."),
}


class ProtocolPage(NamedTuple):
    """The protocol of groups of some types: which answer a coordinator gives, in which state, to whom."""

    title: str
    file: str  #: in ``docs``
    module: ModuleType
    phases: str  #: what the letters of the column *phase* mean, empty if there is none

    @property
    def table(self) -> Table:
        return self.module.TABLE  # type: ignore[no-any-return]

    @property
    def words(self) -> dict[str, str]:
        """The words of the cells, and what they mean: the comment beside each in the source."""
        used = {word for row in self.table.rows for cell in row.cells for word in cell.split()}
        meanings = {
            word: meaning
            for kind in self.table.words.values()
            for word, meaning in re.findall(r'= "([\w-]+)"  #: (.*)', getsource(kind))
            if word in used
        }
        return meanings | {word: ", ".join(words) for word, words in self.table.collective.items()}

    def api(self, row: str) -> str:
        """Return the API of a row, or of its letter."""
        api_key = self.table.apis.get(row[0])
        return "Any API" if api_key is None else API_NAMES[api_key]

    def rows_of(self, letter: str) -> list[Row]:
        return [row for row in self.table.rows if row.name[0] == letter]


CLASSIC: Final = ProtocolPage(
    "The protocol of classic groups",
    "protocol.md",
    protocol,
    "E Empty, P PreparingRebalance, K CompletingRebalance, S Stable, D Dead, - no such group, L loading, N coordinated by another broker; "
    "held: a request that was held is answered",
)
EPOCHS: Final = ProtocolPage(
    "The protocol of consumer, share and Streams groups",
    "protocol-epochs.md",
    epochs_protocol,
    "",
)
PAGES: Final = (CLASSIC, EPOCHS)

WRITTEN: Final = "Written from the code by `python -m streaming.commands.docs`; change the code, not this file."

_READING: Final = """
Every finding that the monitor publishes names one of these rules. `rebalance-monitor rules` lists them, `rebalance-monitor rules G-02`
prints one of them.

**Severity** says how much it hurts: *info* is worth knowing, *warning* will hurt, *error* hurts now, *critical* means that data may be
lost or processed twice. Some rules begin with a warning and go on to an error; the table gives the worst.

**Certainty** says how it is known. *Certain*: from the frames themselves. *Confirmed*: given facts about the group that were themselves
proven by frames, with no loss and no failover in between; a group first seen in mid-life has none of these yet. *Heuristic*: a threshold
was crossed.

**Blame** says whose doing it is: the *client*, the *broker*, the *config*uration, an *operator*, or the *capture*, which is the monitor's
own side. A finding may name another than the rule does when it knows better.

**Frame rules** look at each frame when it is captured; their findings are over when the breach does not recur for a minute, or sooner
where the rule can tell. **Timer rules** look at what is due if nothing happens; their findings are over when it is due no longer.

Where the software is known for what a finding shows, its *What to do* quotes that: [known-defects.md](known-defects.md).

A finding that is the **effect of** another open one, about the same member or about the whole group, is not told: the other
**covers** it.
"""


def rules_document() -> str:
    """Return ``docs/rules.md``: how to read a rule, and a table of the rules of each family."""
    parts = ["# Rules", WRITTEN, _READING.strip()]
    for letter in families():
        title, about = FAMILIES[letter]
        parts += [f"## [{letter}: {title}](rules/{letter}.md)", about, _overview(letter)]
    return "\n\n".join(parts) + "\n"


def family_document(letter: str) -> str:
    """Return ``docs/rules/LETTER.md``: the rules of a family in full."""
    title, about = FAMILIES[letter]
    how = f"{about} How to read a rule, and the other families: [rules.md](../rules.md)."
    parts = [f"# {letter}: {title}", WRITTEN, how, *_introductions(letter), *map(_in_full, family(letter))]
    return "\n\n".join(parts) + "\n"


def states_section() -> str:
    """Return the part of the classic protocol's page on a group's state: how it is estimated, its diagram and its table."""
    parts = [
        "## The state of a group",
        *_paragraphs(state),
        "### Diagram",
        _diagram(),
        "### Signs",
        _signs(),
        "### Table",
        _table(),
    ]
    return "\n\n".join(parts)


def protocol_document(page: ProtocolPage) -> str:
    """Return the page of a protocol's table, API by API."""
    title, *essay = _paragraphs(page.module)
    others = (f"{other.title} is on [a page of its own]({other.file})." for other in PAGES if other is not page)
    parts = [f"# {page.title}", WRITTEN, title, *others, *essay]
    parts.append("\n".join(f"* `{word}`: {meaning}" for word, meaning in page.words.items()))
    for letter in dict.fromkeys(row.name[0] for row in page.table.rows):
        parts += [f"## {page.api(letter)}", _protocol_table(page, letter)]
    if page is CLASSIC:
        parts.append(states_section())
    return "\n\n".join(parts) + "\n"


_DEFECTS: Final = """
A finding whose rule is named here quotes the defect, with its source, if it is about that software and the release may have it. A client
that announces no software (KIP-511, ApiVersions v3) is known by its default client id (aiokafka, kafka-python, kafka-go) or by the
spelling of its assignor (kafkajs). A broker is known by the versions that it advertises and answers: they show the oldest release that it
can be. Where no ApiVersions answer of it was captured, a newer one behind old clients may be quoted too.

Not every finding of the rule comes from the defect: it is where to look first. `rebalance-monitor clients` and the
[report](report.md) name the defects that the releases in use have, shown or not.
"""


def known_defects_document() -> str:
    """Return ``docs/known-defects.md``: the table of known defects."""
    rows = ["| software | releases | what it does | shown by | what helps | source |", "| --- | --- | --- | --- | --- | --- |"]
    for defect in KNOWN_DEFECTS:
        cells = (defect.library, defect.releases, f"It {defect.does}.", defect.signature, defect.helps or "—", _source(defect))
        rows.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n\n".join(["# Known defects", WRITTEN, _DEFECTS.strip(), "\n".join(rows)]) + "\n"


def _source(defect: Defect) -> str:
    """Return a link to the source, by a short name: ``librdkafka#5569``, or the file's."""
    place = re.fullmatch(r"https://github\.com/[\w.-]+/([\w.-]+)/(?:issues|pull)/(\d+)", defect.source)
    name = f"{place[1]}#{place[2]}" if place else defect.source.rpartition("/")[2]
    return f"[{name}]({defect.source})"


def families() -> list[str]:
    """Return the letters of the families that have rules, in the order of the catalogue."""
    return list(dict.fromkeys(rule.family for rule in CATALOGUE.values()))


def family(letter: str) -> list[Rule]:
    """Return the rules of one family, by number."""
    return sorted((rule for rule in CATALOGUE.values() if rule.family == letter), key=lambda rule: rule.id)


def covered_by(rule: Rule) -> list[str]:
    """Return the ids of the rules that an open finding of this one, about the same member or the whole group, suppresses."""
    return [other.id for other in CATALOGUE.values() if rule.id in other.suppressed_by]


# ---------------------------------------------------------------------------------------------------- rules


def _overview(letter: str) -> str:
    rows = ["| rule | name | severity | certainty | blame |", "| --- | --- | --- | --- | --- |"]
    rows += [
        f"| {_link(rule.id, 'rules/')} | {_cell(rule.name)} | {rule.severity.value} | {rule.certainty.value} | {rule.blame.value} |"
        for rule in family(letter)
    ]
    return "\n".join(rows)


def _introductions(letter: str) -> Iterator[str]:
    """Yield the docstrings of a family's modules, without their first paragraphs."""
    for module in MODULES:
        if any(isinstance(one, Rule) and one.family == letter for one in vars(module).values()):
            yield from _paragraphs(module)[1:]


def _in_full(rule: Rule) -> str:
    kind = "timer" if isinstance(rule, TimerRule) else "frame"
    lines = [
        f"## {rule.id} {rule.name}",
        "",
        f"*{rule.severity.value}, {rule.certainty.value}, blames the {rule.blame.value}; {kind} rule*",
        "",
        f"- **Meaning**: {_text(rule.meaning)}",
        f"- **Fires when**: {_text(rule.condition)}",
        f"- **Expected**: {_text(rule.expected)}",
        f"- **False alarms**: {_text(rule.false_alarms)}",
        f"- **What to do**: {_text(rule.action)}",
    ]
    if rule.suppressed_by:
        causes = ", ".join(_link(id_) if id_ in CATALOGUE else id_ for id_ in rule.suppressed_by)
        lines.append(f"- **Effect of**: {causes}")
    covered = covered_by(rule)
    if covered:
        lines.append(f"- **Covers**: {', '.join(map(_link, covered))}")
    return "\n".join(lines)


def _link(rule_id: str, folder: str = "") -> str:
    """Return a link to a rule's heading on the page of its family, by the anchor that Markdown renderers derive from it.

    :param folder: of that page, as seen from the page with the link.
    """
    rule = CATALOGUE[rule_id]
    heading = f"{rule_id} {rule.name}".lower()
    anchor = re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")
    return f"[{rule_id}]({folder}{rule.family}.md#{anchor})"


# ---------------------------------------------------------------------------------------------------- states


def _protocol_table(page: ProtocolPage, letter: str) -> str:
    lines = [f"| {' | '.join(page.table.columns)} | |", f"| {' | '.join('---' for _ in page.table.columns)} | --- |"]
    lines += [f"| {' | '.join(row.cells)} | {_cell(row.note)} |" for row in page.rows_of(letter)]
    return "\n".join(lines)


def _diagram() -> str:
    """Return a diagram of the transitions between different states."""
    arrows: dict[tuple[State, State], list[Observation]] = {}
    for before in State:
        for seen in Observation:
            if after(before, seen) is not before and seen is not Observation.LOST_SIGHT:
                arrows.setdefault((before, after(before, seen)), []).append(seen)
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {State.UNKNOWN.value}"]
    lines += [
        f"    {before.value} --> {then.value}: {', '.join(_short(seen) for seen in signs)}"
        for (before, then), signs in arrows.items()
    ]
    return "\n".join(
        [*lines, "```", "", f"From every state, *{_short(Observation.LOST_SIGHT)}* leads back to {State.UNKNOWN.value}."]
    )


def _signs() -> str:
    rows = ["| sign | what the wire shows |", "| --- | --- |"]
    return "\n".join([*rows, *(f"| {_short(seen)} | {_cell(seen.value)} |" for seen in Observation)])


def _table() -> str:
    rows = [
        "In this state (row), having seen that (column), the group is now there; a dot means that it stays.",
        "",
        f"| | {' | '.join(_short(seen) for seen in Observation)} |",
        f"| --- |{' --- |' * len(Observation)}",
    ]
    for before in State:
        cells = ("·" if after(before, seen) is before else after(before, seen).value for seen in Observation)
        rows.append(f"| **{before.value}** | {' | '.join(cells)} |")
    return "\n".join(rows)


def _short(seen: Observation) -> str:
    return seen.name.lower().replace("_", " ")


# ---------------------------------------------------------------------------------------------------- words


def _paragraphs(module: ModuleType) -> list[str]:
    """Return the paragraphs of a module's docstring as Markdown."""
    text = cleandoc(module.__doc__ or "")
    return [_text(paragraph).replace("``", "`") for paragraph in text.split("\n\n")]


def _text(sentence: str) -> str:
    """Escape topic names, which are no emphasis, and angle brackets, which are no HTML."""
    return sentence.replace("__", r"\_\_").replace("<", r"\<")


def _cell(text: str) -> str:
    return _text(text).replace("|", r"\|")
