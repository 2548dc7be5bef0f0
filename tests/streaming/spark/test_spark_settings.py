"""The section ``[spark]``: what is passed through, what is refused, and what a JVM of our own is told."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from streaming.config.settings import Job
from streaming.config.spark import Spark
from streaming.spark import session
from streaming.spark.jvm import JvmError


@pytest.mark.parametrize(
    "master", ["local[2]", "local", "local-cluster[2,1,512]", "spark://h:7077", "yarn", "k8s://https://h:6443"]
)
def test_any_master_of_spark_is_taken(master):
    assert Spark(master=master).is_one_machine == master.startswith("local[") or master == "local"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"master": "mesos://h"}, "String should match pattern"),
        ({"conf": {"executor.cores": "1"}}, "executor.cores is no property of Spark: they begin with spark."),
        ({"conf": {"spark.master": "yarn"}}, "spark.master is set by spark.master"),
        ({"conf": {"spark.driver.memory": "2g"}}, "spark.driver.memory is set by job.driver_memory"),
        ({"conf": {"spark.sql.shuffle.partitions": 4}}, "spark.sql.shuffle.partitions must be 1, because a lane is one task"),
        ({"conf": {"spark.dynamicAllocation.enabled": True}}, "must be false, because an executor keeps the state of its lanes"),
    ],
)
def test_what_the_job_cannot_do_with_is_refused_with_the_reason(given, words):
    with pytest.raises(ValidationError, match=words):
        Spark(**given)


@pytest.fixture
def conf_of(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "connector_jars", lambda: [tmp_path / "connector.jar"])
    job = Job(checkpoint=tmp_path / "checkpoint", log_file=tmp_path / "log", cores=2, lanes=2)
    return lambda **given: dict(session._conf(job, Spark(**given)).getAll())


def test_one_machine_needs_no_setting_and_listens_to_nobody_else(conf_of, tmp_path):
    conf = conf_of()
    assert (conf["spark.master"], conf["spark.driver.host"]) == ("local[3,4]", "127.0.0.1")
    assert conf["spark.driver.extraClassPath"] == str(tmp_path / "connector.jar")
    assert conf["spark.local.dir"] == str(tmp_path / "checkpoint" / "scratch")
    assert "spark.jars" not in conf


def test_a_cluster_gets_the_connector_and_keeps_sparks_own_places(conf_of, tmp_path):
    conf = conf_of(master="spark://h:7077", conf={"spark.jars": "/own.jar", "spark.executor.cores": 1})
    assert conf["spark.master"] == "spark://h:7077"
    assert conf["spark.jars"] == f"/own.jar,{(tmp_path / 'connector.jar').as_uri()}"
    assert conf["spark.executor.cores"] == "1"
    assert not {"spark.driver.host", "spark.driver.bindAddress", "spark.local.dir", "spark.driver.extraClassPath"} & set(conf)


@pytest.mark.parametrize(("folder", "master"), [("jars, of ours", "spark://h:7077"), ("jars:of ours", None)])
def test_a_folder_of_jars_whose_name_would_split_their_list_is_refused_in_a_sentence(
    conf_of, monkeypatch, tmp_path, folder, master
):
    """Spark dropped the connector, and said it were missing."""
    monkeypatch.setattr(session, "connector_jars", lambda: [tmp_path / folder / "connector.jar"])
    with pytest.raises(
        JvmError, match=r"the JVM parts are in .*/jars.*ours, and a list of jars is split at each '[,:]': choose a folder"
    ):
        conf_of(master=master)


@pytest.mark.parametrize(("folder", "master"), [("jars, of ours", None), ("jars:of ours", "spark://h:7077")])
def test_a_folder_of_jars_is_taken_where_its_name_splits_nothing(conf_of, monkeypatch, tmp_path, folder, master):
    jar = tmp_path / folder / "connector.jar"
    monkeypatch.setattr(session, "connector_jars", lambda: [jar])
    conf = conf_of(master=master)
    assert conf.get("spark.jars", conf.get("spark.driver.extraClassPath")) in {str(jar), jar.as_uri()}


def test_what_is_configured_counts_more_than_the_defaults_of_the_job(conf_of):
    assert conf_of()["spark.ui.enabled"] == "false"
    assert conf_of(conf={"spark.ui.enabled": True})["spark.ui.enabled"] == "true"
