"""What differs between the releases of Spark, as each says it."""

from __future__ import annotations

import pytest

from streaming.spark import versions


@pytest.mark.parametrize(
    "reported",
    [
        {"mirror": {"0": 17, "1": 4}},
        '{"mirror":{"0":17,"1":4}}',
        "{'mirror': {'0': 17, '1': 4}}",
    ],
)
def test_offsets_are_read_however_a_release_reports_them(reported):
    assert versions.offsets(reported) == {"mirror": {"0": 17, "1": 4}}


@pytest.mark.parametrize("nothing", [None, "", {}, "null", "None", "{}"])
def test_no_offsets_are_none(nothing):
    assert versions.offsets(nothing) == {}


def test_the_connector_is_of_the_scala_and_the_line_of_the_spark_that_is_installed(monkeypatch, tmp_path):
    (tmp_path / "spark-core_2.12-3.5.9.jar").touch()
    monkeypatch.setattr(versions, "JARS", tmp_path)
    monkeypatch.setattr(versions, "VERSION", (3, 5, 9))
    monkeypatch.setattr(versions.pyspark, "__version__", "3.5.9")
    assert versions.connector() == ("2.12", "[3.0.0,3.5.9]")
    assert versions.connector().package == "org.apache.spark:spark-sql-kafka-0-10_2.12:3.5.9"


@pytest.mark.parametrize(
    ("spark", "pyarrow", "fits"), [((3, 5, 9), "26.0.1", False), ((3, 5, 9), "25.0.1", True), ((4, 2, 0), "26.0.1", True)]
)
def test_a_pyarrow_that_spark_fails_with_is_named(monkeypatch, spark, pyarrow, fits):
    monkeypatch.setattr(versions, "VERSION", spark)
    monkeypatch.setattr(versions, "version", lambda _: pyarrow)
    assert (versions.misfit() is None) == fits
