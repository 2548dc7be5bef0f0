"""A cluster as companies run it: three brokers, TLS with SCRAM and with client certificates, and an authorizer that denies by default."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from streaming.demo.broker import HOST
from tests.certificates import Authority, Identity
from tests.real.brokers import Cluster

PASSWORD = "correct-horse-battery-staple"
LISTENERS = {"CERTIFIED": "SSL", "SCRAM": "SASL_SSL"}
ANYTHING = "*"


class Administrator:
    """What an administrator does with users and rights."""

    def __init__(self, bootstrap: str) -> None:
        self.admin = AdminClient({"bootstrap.servers": bootstrap})

    def set_password(self, user: str, password: str) -> None:
        how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        asked = self.admin.alter_user_scram_credentials([UserScramCredentialUpsertion(user, how, password.encode())])
        asked[user].result(60)

    def grant(self, user: str, operation: str, kind: ResourceType, name: str) -> None:
        rule = AclBinding(kind, name, _LITERAL, f"User:{user}", "*", AclOperation[operation.upper()], AclPermissionType.ALLOW)
        for done in self.admin.create_acls([rule]).values():
            done.result(60)

    def take(self, user: str, operation: str, kind: ResourceType, name: str) -> None:
        rule = AclBindingFilter(kind, name, _LITERAL, f"User:{user}", "*", AclOperation[operation.upper()], AclPermissionType.ALLOW)
        for done in self.admin.delete_acls([rule]).values():
            assert done.result(60), f"{user} has the right to {operation} {name}"

    def rights(self) -> set[tuple[str, str, str, str]]:
        """User, operation, kind and name of everything that is allowed."""
        everything = AclBindingFilter(
            ResourceType.ANY, None, ResourcePatternType.ANY, None, None, AclOperation.ANY, AclPermissionType.ANY
        )
        return {
            (rule.principal.removeprefix("User:"), rule.operation.name.capitalize(), rule.restype.name.lower(), rule.name)
            for rule in self.admin.describe_acls(everything).result(60)
        }


class SecuredCluster(Administrator):
    """The brokers, and what an administrator does with them."""

    def __init__(self, cluster: Cluster, authority: Authority) -> None:
        super().__init__(cluster.internal)
        self.cluster = cluster
        self.authority = authority

    def bootstrap(self, listener: str) -> str:
        return ",".join(broker.address(listener) for broker in self.cluster.brokers)

    def add_user(self, user: str) -> dict[str, str]:
        """Make a user with a password; gives the properties of its clients."""
        self.set_password(user, PASSWORD)
        return {
            "bootstrap.servers": self.bootstrap("SCRAM"),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.authority.certificate),
        }


_LITERAL = ResourcePatternType.LITERAL


def denying_by_default(listeners: Mapping[str, str], server: Identity, authority: Authority) -> dict[str, str | int]:
    """A broker's properties: listeners with TLS, by SCRAM or by client certificates, and an authorizer that denies what is not granted."""
    properties: dict[str, str | int] = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:admin",  # the plain listeners, on loopback: of the brokers among themselves and of tests
    }
    for name, protocol in listeners.items():
        prefix = f"listener.name.{name.lower()}"
        for store, file in (("keystore", server.both), ("truststore", authority.certificate)):
            properties |= {f"{prefix}.ssl.{store}.type": "PEM", f"{prefix}.ssl.{store}.location": str(file)}
        if protocol == "SSL":
            properties[f"{prefix}.ssl.client.auth"] = "required"
        else:
            properties[f"{prefix}.sasl.enabled.mechanisms"] = "SCRAM-SHA-512"
            properties[f"{prefix}.scram-sha-512.sasl.jaas.config"] = (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            )
    return properties


@contextmanager
def secured_cluster(
    folder: Path, size: int = 3, *, advertised: Sequence[Mapping[str, str]] | None = None
) -> Iterator[SecuredCluster]:
    """Brokers with small heaps; topics have a replica on each, two of which must be in sync where there are several."""
    authority = Authority(folder)
    properties = {
        **denying_by_default(LISTENERS, authority.identity("broker", address=HOST), authority),
        "default.replication.factor": size,
        "min.insync.replicas": min(2, size),
    }
    with Cluster(
        size, advertised=advertised, listeners=LISTENERS, properties=properties, offsets_partitions=1, heap_mib=256
    ) as cluster:
        yield SecuredCluster(cluster, authority)
