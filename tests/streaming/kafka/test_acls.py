"""What is said of a missing right: the user, the right, and the command that grants it."""

from __future__ import annotations

from streaming.kafka.acls import grant, refused_topics, user_of
from tests.certificates import Authority

SCRAM = {"bootstrap.servers": "k:9093", "security.protocol": "SASL_SSL", "sasl.username": "monitor"}


def test_the_user_is_the_one_that_kafka_knows(tmp_path):
    client = Authority(tmp_path).identity("tap")
    assert user_of(SCRAM) == "monitor"
    assert user_of({"security.protocol": "SSL", "ssl.certificate.location": str(client.certificate)}) == "CN=tap"
    assert user_of({"security.protocol": "SSL", "ssl.certificate.location": str(tmp_path / "absent")}) == "(unknown)"
    assert user_of({"bootstrap.servers": "k:9092"}) == "ANONYMOUS"


def test_a_grant_names_a_file_of_security_settings_where_there_are_any():
    assert grant(SCRAM, "Write", "mirror") == (
        "`kafka-acls.sh --bootstrap-server k:9093 --command-config admin.properties --add "
        "--allow-principal 'User:monitor' --operation Write --topic mirror`"
    )
    assert "--command-config" not in grant({"bootstrap.servers": "k:9092"}, "Write", "mirror")


def test_topics_that_the_java_client_may_not_use_are_said_with_user_and_remedy():
    text = (
        "org.apache.spark.SparkException: Job aborted\n"
        "Caused by: org.apache.kafka.common.errors.TopicAuthorizationException: Not authorized to access topics: [mirror, findings]\n"
    )
    assert refused_topics(SCRAM, text, read=["mirror"]) == (
        "user monitor may not read topic mirror, user monitor may not write to topic findings; grant the right: "
        f"{grant(SCRAM, 'Read', 'mirror')}, {grant(SCRAM, 'Write', 'findings')}"
    )
    assert refused_topics(SCRAM, "something else", read=["mirror"]) is None
