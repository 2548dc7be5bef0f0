"""The Kafka releases that the laboratory and the conformance of client libraries run, and where their jars come from."""

from __future__ import annotations

from pathlib import Path

from streaming.spark import jvm
from tests.real.brokers import Cluster
from tests.real.lab.zookeeper import ZooKeeperCluster

LAB_JARS = Path(__file__).resolve().parents[3] / "deploy" / "ivy-lab.xml"

#: Line of releases → configuration of ``deploy/ivy-lab.xml``; None for the one of ``deploy/ivy.xml``, which the demo runs too.
RELEASES = {"4.4": "broker-4.4", "4.3": None, "4.2": "broker-4.2", "4.1": "broker-4.1", "3.9": "broker-3.9"}

#: Releases that need ZooKeeper; client libraries are led through their scenarios there, the laboratory does not run them.
OLD_RELEASES = {"2.8": "broker-2.8"}


def broker_jars(line: str) -> list[Path]:
    """The jars of a line's newest broker.

    :raises streaming.spark.jvm.JvmError: when they cannot be had.
    """
    configuration = {**RELEASES, **OLD_RELEASES}[line]
    return jvm.jars("broker") if configuration is None else jvm.jars(configuration, ivy_file=LAB_JARS)


def version(jars: list[Path]) -> str:
    """The exact version, from the name of its main jar: ``kafka_2.13-4.3.1.jar``."""
    return next(jar.stem.partition("-")[2] for jar in jars if jar.name.startswith("kafka_2.13-"))


def cluster_kind(line: str) -> type[Cluster]:
    """How brokers of this line find each other."""
    return ZooKeeperCluster if line in OLD_RELEASES else Cluster
