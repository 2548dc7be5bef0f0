"""Stands in for Kafka's ``kafka-acls.sh``, with its options: a Java less for each line. Run as a program by docs/kafka-acls.sh."""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType

parser = argparse.ArgumentParser()
parser.add_argument("--bootstrap-server", required=True)
parser.add_argument("--command-config", type=Path, help="in the words of librdkafka")
parser.add_argument("--add", action="store_true", required=True)
parser.add_argument("--allow-principal", action="append", required=True)
parser.add_argument("--operation", action="append", required=True)
parser.add_argument("--topic", action="append", default=[])
parser.add_argument("--group", action="append", default=[])
given = parser.parse_args()
resources = [(ResourceType.TOPIC, name) for name in given.topic] + [(ResourceType.GROUP, name) for name in given.group]
rules = [
    AclBinding(kind, name, ResourcePatternType.LITERAL, user, "*", AclOperation[operation.upper()], AclPermissionType.ALLOW)
    for user, operation, (kind, name) in itertools.product(given.allow_principal, given.operation, resources)
]
assert rules, "there is something to grant"
lines = given.command_config.read_text().splitlines() if given.command_config else []
admin = AdminClient(dict(line.split("=", 1) for line in lines) | {"bootstrap.servers": given.bootstrap_server})
for done in admin.create_acls(rules).values():
    done.result(60)
