"""The client libraries, in the order of the table: their versions, how their drivers are built, and what they can do.

A library that speaks several group protocols is here once for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final

from tests.conformance import builds

#: Group protocol → the oldest broker that has it without a preview's switch.
OLDEST_BROKER: Final = {"classic": (0, 9), "consumer": (4, 0), "share": (4, 2), "streams": (4, 2)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One library at one version, speaking one group protocol.

    :param command: gives the driver's command line, building it first; raises BuildError.
    :param assignors: of those that the scenarios ask for.
    """

    name: str
    version: str
    language: str
    command: Callable[[], list[str]]
    protocol: str = "classic"
    assignors: tuple[str, ...] = ("range", "roundrobin", "cooperative-sticky")
    static: bool = True
    transactions: bool = True
    commits: bool = True  #: when it is told to; others only by themselves
    tells: bool = True  #: what it is assigned
    logs_in: bool = False  #: its driver can, by SCRAM
    returns: bool = True  #: a client that has left its group can subscribe again

    def speaks_to(self, release: str) -> bool:
        """Whether brokers of a release, or of a line of them such as 4.3, have its protocol."""
        major, minor = release.split(".")[:2]
        return (int(major), int(minor)) >= OLDEST_BROKER[self.protocol]


LIBRARIES: tuple[Library, ...] = (
    Library(
        name="kafka-clients",
        version="4.3.1",
        language="Java",
        command=lambda: builds.java("ClientsDriver", "clients"),
        logs_in=True,
    ),
    Library(
        name="kafka-clients-consumer",
        version="4.3.1",
        language="Java",
        command=lambda: builds.java("ClientsDriver", "clients"),
        protocol="consumer",
        assignors=("uniform",),
        logs_in=True,
    ),
    Library(
        name="kafka-clients-share",
        version="4.3.1",
        language="Java",
        command=lambda: builds.java("ShareDriver", "clients"),
        protocol="share",
        assignors=("simple",),
        static=False,
        transactions=False,
        tells=False,
    ),
    Library(
        name="kafka-streams",
        version="4.3.1",
        language="Java",
        command=lambda: builds.java("StreamsDriver", "streams"),
        assignors=("stream",),
        commits=False,
    ),
    Library(
        name="kafka-streams-streams",
        version="4.3.1",
        language="Java",
        command=lambda: builds.java("StreamsDriver", "streams"),
        protocol="streams",
        assignors=("sticky",),
        static=False,
        commits=False,
    ),
    Library(
        name="confluent-kafka",
        version=version("confluent-kafka"),
        language="Python",
        command=lambda: builds.python("confluent.py"),
        logs_in=True,
    ),
    Library(
        name="confluent-kafka-consumer",
        version=version("confluent-kafka"),
        language="Python",
        command=lambda: builds.python("confluent.py"),
        protocol="consumer",
        assignors=("uniform",),
        logs_in=True,
    ),
    Library(
        name="kafka-python",
        version=version("kafka-python"),
        language="Python",
        command=lambda: builds.python("kafka_python.py"),
        logs_in=True,
    ),
    Library(
        name="aiokafka",
        version="0.14.0",
        language="Python",
        command=lambda: builds.python_apart("aiokafka_driver.py"),
        assignors=("range", "roundrobin"),
    ),
    Library(name="franz-go", version="1.22.2", language="Go", command=lambda: builds.go("franzgo"), logs_in=True, returns=False),
    Library(
        name="sarama",
        version="1.61.1",
        language="Go",
        command=lambda: builds.go("sarama"),
        logs_in=True,
        assignors=("range", "roundrobin"),
        transactions=False,
    ),
    Library(
        name="kafka-go",
        version="0.4.51",
        language="Go",
        command=lambda: builds.go("kafkago"),
        assignors=("range", "roundrobin"),
        static=False,
        transactions=False,
        tells=False,
        returns=False,
    ),
    Library(
        name="kafkajs",
        version="2.2.4",
        language="JavaScript",
        command=lambda: builds.node("kafkajs.js"),
        logs_in=True,
        assignors=("roundrobin",),
        static=False,
        transactions=False,
    ),
    Library(
        name="@platformatic/kafka",
        version="2.12.1",
        language="JavaScript",
        command=lambda: builds.node("platformatic.js"),
        assignors=("roundrobin",),
        transactions=False,
    ),
    Library(name="rdkafka", version="0.39.0", language="Rust", command=lambda: builds.rust("rdkafka_driver")),
    Library(name="krafka", version="0.28.1", language="Rust", command=lambda: builds.rust("krafka_driver"), logs_in=True),
    Library(
        name="krafka-consumer",
        version="0.28.1",
        language="Rust",
        command=lambda: builds.rust("krafka_driver"),
        protocol="consumer",
        assignors=("uniform",),
        logs_in=True,
    ),
    Library(
        name="quixstreams",
        version="3.28.1",
        language="Python",
        command=lambda: builds.python_apart("quix.py"),
        commits=False,
        tells=False,
    ),
    Library(
        name="faust-streaming",
        version="0.15.3",
        language="Python",
        command=lambda: builds.python_apart("faust_driver.py"),
        assignors=("faust",),
        static=False,
        transactions=False,
        commits=False,
        tells=False,
    ),
)
