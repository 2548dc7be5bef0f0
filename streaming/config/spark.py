"""The configuration's section ``[spark]``: which Spark runs the job, and its settings beyond the job's own."""

from __future__ import annotations

import os
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from streaming.config.base import ClientProperty, Section

DEPENDED_ON: Final = {
    "spark.sql.shuffle.partitions": ("1", "a lane is one task"),
    "spark.python.worker.reuse": ("true", "a worker keeps the live model"),
    "spark.dynamicAllocation.enabled": ("false", "an executor keeps the state of its lanes"),
}
"""Properties that must have a certain value, and why."""

_KEYS_OF_OURS: Final = {
    "spark.master": "spark.master",
    "spark.driver.memory": "job.driver_memory",
    "spark.driver.extraJavaOptions": "job.jvm_options",
    "spark.submit.deployMode": "spark-submit",
}
"""Properties that are set otherwise."""

_GATEWAY: Final = "PYSPARK_GATEWAY_PORT"
"""Environment variable in which a JVM gives the Python that it has started its address."""


def is_submitted() -> bool:
    """Whether ``spark-submit`` has started this process."""
    return _GATEWAY in os.environ


def contradiction(name: str, value: str) -> str | None:
    """What is wrong with a property that the job depends on; None if it is as it must be."""
    wanted, why = DEPENDED_ON.get(name, (value, ""))
    return None if value == wanted else f"{name} must be {wanted}, because {why}"


def _possible(conf: dict[str, str]) -> dict[str, str]:
    for name, value in conf.items():
        if not name.startswith("spark."):
            raise ValueError(f"{name} is no property of Spark: they begin with spark.")
        if name in _KEYS_OF_OURS:
            raise ValueError(f"{name} is set by {_KEYS_OF_OURS[name]}")
        if (problem := contradiction(name, value)) is not None:
            raise ValueError(problem)
    return conf


class Spark(Section):
    """Where the job runs; one machine unless it says otherwise."""

    master: str | None = Field(default=None, pattern=r"^(local(-cluster)?(\[.+\])?|spark://.+|yarn|k8s://.+)$")
    conf: Annotated[dict[str, ClientProperty], AfterValidator(_possible)] = Field(default_factory=dict)

    @property
    def is_one_machine(self) -> bool:
        """Whether driver and executors are one JVM."""
        return self.master is None or self.master.startswith("local[") or self.master == "local"
