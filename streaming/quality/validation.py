"""Great Expectations, kept at arm's length: a suite and a frame in, outcomes out, Data Docs beside.

Great Expectations prints progress bars, keeps every result for ever and can phone home. So the bars and analytics are off, the store is
pruned, and pages are written now and then for the results that are kept: the newest and the newest failure since the last time. The store
is a folder beside the pages: pages whose result is gone are removed, so one in memory would lose the history at a restart.
"""

from __future__ import annotations

import math
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

os.environ["GX_ANALYTICS_ENABLED"] = "false"

import great_expectations as gx
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.data_context.types.base import DataContextConfig, InMemoryStoreBackendDefaults, ProgressBarsConfig
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

from streaming.config.settings import ConfigError
from streaming.quality.frame_rows import EXAMPLES, to_frame
from streaming.quality.pages import PLUGINS, Result, write_index

if TYPE_CHECKING:
    import pandas as pd

    from streaming.quality.suite import Expected, Suite

SITE: Final = "mirror"
RESULTS: Final = "results"
"""Folder of the results that have pages, as JSON, below that of the pages."""
SHOWN: Final = 20
"""Offending records named in a result."""


class Outcome(NamedTuple):
    """What became of one expectation on one batch."""

    expected: Expected
    success: bool
    checked: int  #: rows it applied to
    unexpected: int
    records: tuple[tuple[int, int], ...]  #: partition and offset of the first offending ones
    problem: str | None  #: why it could not be checked


class Validator:
    """Validates frames against one suite and keeps Data Docs of the outcome.

    :param docs: folder of the HTML pages.
    :param docs_every_s: how often pages are written; 0 is after each batch.
    :param docs_history: for how many results there are pages.
    :raises ConfigError: when Great Expectations does not take the suite.
    """

    def __init__(self, suite: Suite, *, docs: Path, docs_every_s: float, docs_history: int) -> None:
        self._expected = suite.expectations
        self._docs_every_s = docs_every_s
        self._docs_history = docs_history
        self._docs_due = 0.0
        self._has_docs = False
        self._new: list[tuple[Any, bool]] = []  # store key and success of each result since the pages were written
        self._docs = docs.resolve()
        self._suite = suite.name
        site = {
            "class_name": "SiteBuilder",
            "show_how_to_buttons": False,
            "store_backend": {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(self._docs)},
            "site_index_builder": {"class_name": "DefaultSiteIndexBuilder"},
        }
        defaults = InMemoryStoreBackendDefaults(init_temp_docs_sites=False)
        defaults.stores[defaults.validation_results_store_name]["store_backend"] = {
            "class_name": "TupleFilesystemStoreBackend",
            "base_directory": str(self._docs / RESULTS),
        }
        project = DataContextConfig(
            store_backend_defaults=defaults,
            plugins_directory=str(PLUGINS),
            data_docs_sites={SITE: site},
            analytics_enabled=False,
            progress_bars=ProgressBarsConfig(globally=False),
        )
        self._context = context = gx.get_context(mode="ephemeral", project_config=project)
        self._kept: list[Any] = sorted(context.validation_results_store.list_keys(), key=_when)
        frames = context.data_sources.add_pandas("kafka").add_dataframe_asset("mirror")
        checked = context.suites.add(gx.ExpectationSuite(name=suite.name, expectations=[_built(each) for each in self._expected]))
        self._definition = context.validation_definitions.add(
            gx.ValidationDefinition(name=suite.name, data=frames.add_batch_definition_whole_dataframe("batch"), suite=checked)
        )

    def validate(self, frame: pd.DataFrame, name: str) -> list[Outcome]:
        """Check every row of a frame that is not empty.

        :param name: of the batch, for the pages.
        """
        result = self._definition.run(
            batch_parameters={"dataframe": frame},
            result_format={
                "result_format": "SUMMARY",
                "unexpected_index_column_names": ["partition", "offset"],
                "partial_unexpected_count": SHOWN,
            },
            run_id=RunIdentifier(run_name=name, run_time=datetime.now(UTC)),
        )
        store = self._context.validation_results_store
        known = {*self._kept, *(key for key, _ in self._new)}
        self._new += [(key, bool(result.success)) for key in store.list_keys() if key not in known]
        self._write_docs()
        return [_outcome(expected, each) for expected, each in zip(self._in_order(result), result.results, strict=True)]

    def _in_order(self, result: Any) -> list[Expected]:
        """The expectations in the order of a result's, which need not be the suite's."""
        waiting = list(self._expected)
        ordered = []
        for each in result.results:
            config = each.expectation_config
            match = next(expected for expected in waiting if _is(expected, config))
            waiting.remove(match)
            ordered.append(match)
        return ordered

    def _write_docs(self) -> None:
        if time.monotonic() < self._docs_due:
            self._forget(self._new[:-1], keep=_newest_failure(self._new[:-1]))
            return
        self._docs_due = time.monotonic() + self._docs_every_s
        wanted = {key for key in (_newest_failure(self._new), self._new[-1][0]) if key is not None}
        self._forget([entry for entry in self._new if entry[0] not in wanted], keep=None)
        self._kept += [key for key, _ in self._new]
        surplus, self._kept = self._kept[: -self._docs_history], self._kept[-self._docs_history :]
        for key in surplus:
            self._context.validation_results_store.remove_key(key)
        fresh = [key for key, _ in self._new if key in self._kept]
        self._new = []
        self._context.build_data_docs(site_names=[SITE], resource_identifiers=fresh if self._has_docs else None)
        self._has_docs = True  # the suite's own page is among them, and does not change
        write_index(self._docs, self._suite, map(self._shown, self._kept))

    def _shown(self, key: Any) -> Result:
        result = self._context.validation_results_store.get(key)
        failed = (each.expectation_config for each in result.results if not each.success)
        return Result(
            at=f"{_when(key):%Y-%m-%d %H:%M:%S} UTC",
            batch=key.run_id.run_name,
            failed=tuple(each.description or each.type for each in failed),
            page=f"validations/{'/'.join(key.to_tuple())}.html",
        )

    def _forget(self, entries: list[tuple[Any, bool]], *, keep: Any) -> None:
        for entry in entries:
            if entry[0] != keep:
                self._context.validation_results_store.remove_key(entry[0])
                self._new.remove(entry)


def refused(suite: Suite) -> list[str]:
    """Why Great Expectations would not take an expectation, or could not check it on two records that have all there is to have."""
    problems = []
    for expected in suite.expectations:
        try:
            _built(expected)
        except ConfigError as error:
            problems.append(str(error))
    if problems:
        return problems
    with tempfile.TemporaryDirectory() as folder:
        tried = Validator(suite, docs=Path(folder), docs_every_s=math.inf, docs_history=1).validate(to_frame(EXAMPLES), "trial")
    return [
        f"quality.suite: {outcome.expected.subject}: Great Expectations cannot check it: {outcome.problem.splitlines()[0]}"
        for outcome in tried
        if outcome.problem
    ]


def _built(expected: Expected) -> Any:
    """The expectation as Great Expectations' object; a suite made of plain dicts would leave out those it does not understand."""
    config = expected.config
    try:
        return ExpectationConfiguration(
            type=config["type"],
            kwargs=dict(config["kwargs"]),
            meta=config.get("meta"),
            description=config.get("description"),
            severity=config.get("severity", "critical"),
        ).to_domain_obj()
    except Exception as error:  # marshmallow, pydantic and GX's own errors have no common base
        reason = " ".join(str(error).split())
        raise ConfigError(f"quality.suite: Great Expectations does not take {config['type']}: {reason}") from None


def _when(key: Any) -> datetime:
    when: datetime = key.run_id.run_time
    return when.astimezone(UTC)


def _newest_failure(entries: list[tuple[Any, bool]]) -> Any:
    return next((key for key, success in reversed(entries) if not success), None)


def _is(expected: Expected, config: Any) -> bool:
    wanted = expected.config["kwargs"]
    return bool(config.type == expected.config["type"] and all(config.kwargs.get(key) == value for key, value in wanted.items()))


def _outcome(expected: Expected, result: Any) -> Outcome:
    facts = result.result
    raised = result.exception_info or {}
    offending = facts.get("partial_unexpected_index_list") or []
    return Outcome(
        expected=expected,
        success=bool(result.success),
        checked=int(facts.get("element_count", 0)) - int(facts.get("missing_count") or 0),
        unexpected=int(facts.get("unexpected_count", 0)),
        records=tuple((int(row["partition"]), int(row["offset"])) for row in offending),
        problem=_problem(raised),
    )


def _problem(raised: Any) -> str | None:
    """Great Expectations gives one such report, or one for each metric that failed."""
    reports = [raised] if "raised_exception" in raised else list(raised.values())
    return next((str(each["exception_message"]) for each in reports if each.get("raised_exception")), None)
