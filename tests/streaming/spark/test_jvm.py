"""The JVM parts: what is said when Java or a jar cannot be had, and that a damaged cache is noticed."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from contextlib import ExitStack

import pytest

from streaming.spark import jvm
from streaming.spark.jvm import JvmError
from tests.processes import started


@pytest.fixture(autouse=True)
def _no_memory_of_java():
    for remembered in (jvm.java_command, jvm.java_home):
        remembered.cache_clear()
    yield
    for remembered in (jvm.java_command, jvm.java_home):
        remembered.cache_clear()


def _fake_java(folder, script: str) -> None:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True, exist_ok=True)
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of this test's own, whole: two small files stand for the jars."""
    monkeypatch.setenv(jvm.CACHE_VARIABLE, str(tmp_path / "cache"))
    folder = jvm.cache_folder()
    manifest = {}
    for name in jvm.CONFIGURATIONS:
        (folder / name).mkdir(parents=True)
        (folder / name / "a-1.jar").write_bytes(name.encode())
        manifest[name] = [["a-1.jar", len(name), hashlib.sha256(name.encode()).hexdigest()]]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


class TestJava:
    def test_the_one_of_this_machine_will_do(self):
        assert os.access(jvm.java_command(), os.X_OK)

    def test_java_home_comes_first(self, tmp_path, monkeypatch):
        _fake_java(tmp_path, "echo 'openjdk version \"21.0.4\" 2024-07-16' >&2")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        assert jvm.java_command() == str(tmp_path / "bin" / "java")

    @pytest.mark.parametrize(
        ("banner", "release"),
        [
            ('java version "1.8.0_412"', "Java 8"),
            ('openjdk version "11.0.2" 2019-01-15', "Java 11"),
            ('openjdk version "16"', "Java 16"),
        ],
    )
    def test_an_old_one_is_named_with_the_remedy(self, tmp_path, monkeypatch, banner, release):
        _fake_java(tmp_path, f"echo '{banner}' >&2")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        with pytest.raises(JvmError, match=rf"17 or newer.*{tmp_path}.*is {release}: (run `|install)") as caught:
            jvm.java_command()
        assert "\n" not in str(caught.value)

    def test_none_at_all(self, tmp_path, monkeypatch):
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(JvmError, match=r"no java is on PATH: install one"):
            jvm.java_command()

    def test_the_remedy_is_the_command_of_this_system(self, tmp_path, monkeypatch):
        _fake_java(tmp_path, "")
        (tmp_path / "bin" / "java").rename(tmp_path / "bin" / "dnf")
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        with pytest.raises(JvmError, match=r"run `sudo dnf install -y \S+`"):
            jvm.java_command()

    @pytest.mark.parametrize(("script", "said"), [("exit 1", "does not say its version"), (None, "does not run")])
    def test_one_that_does_not_work(self, tmp_path, monkeypatch, script, said):
        if script:
            _fake_java(tmp_path, script)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        with pytest.raises(JvmError, match=said):
            jvm.java_command()

    def test_its_home_is_what_it_says_and_not_where_a_stub_stands(self, tmp_path, monkeypatch):
        real = jvm.java_command()
        jvm.java_command.cache_clear()
        _fake_java(tmp_path, f'exec "{real}" "$@"')
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        assert jvm.java_command() == str(tmp_path / "bin" / "java")
        assert (jvm.java_home() / "lib" / "modules").is_file()

    def test_one_that_does_not_say_where_it_is(self, tmp_path, monkeypatch):
        _fake_java(tmp_path, "echo 'openjdk version \"21.0.4\" 2024-07-16' >&2")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        with pytest.raises(JvmError, match=rf"{tmp_path}/bin/java does not say where it is installed"):
            jvm.java_home()

    def test_what_homebrew_installs_is_not_on_the_path_and_the_line_that_helps_is_said(self, tmp_path, monkeypatch):
        _fake_java(tmp_path, "")
        (tmp_path / "bin" / "java").rename(tmp_path / "bin" / "brew")
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        with pytest.raises(JvmError) as caught:
            jvm.java_command()
        assert str(caught.value).endswith('run `brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)"`')


class TestCache:
    def test_a_whole_one_is_used_without_fetching(self, cache, monkeypatch):
        monkeypatch.setattr(jvm, "_run_ivy", lambda *_: pytest.fail("fetched"))
        assert jvm.jars("broker") == [cache / "broker" / "a-1.jar"]
        assert jvm.verify() == []

    def test_another_ivy_file_has_another_folder(self, cache, tmp_path, monkeypatch):
        other = tmp_path / "ivy.xml"
        other.write_text("<ivy-module/>")
        monkeypatch.setattr(jvm, "_ivy_file", lambda: other)
        assert jvm.cache_folder() != cache
        assert jvm.cache_folder().parent == cache.parent

    @pytest.mark.parametrize("damage", ["shorter", "missing", "no manifest", "half a manifest"])
    def test_a_damaged_one_is_fetched_anew(self, cache, monkeypatch, damage):
        jar, manifest = cache / "spark" / "a-1.jar", cache / "manifest.json"
        if damage == "shorter":
            jar.write_bytes(b"")
        elif damage == "missing":
            jar.unlink()
        elif damage == "no manifest":
            manifest.unlink()
        else:
            manifest.write_text(manifest.read_text()[:20])

        def fetch(java, downloads, target, report, ivy_file):
            for name in jvm.CONFIGURATIONS:
                (target / name).mkdir()
                (target / name / "b-2.jar").write_bytes(b"fresh")

        monkeypatch.setattr(jvm, "_run_ivy", fetch)
        assert jvm.jars("spark") == [cache / "spark" / "b-2.jar"]
        assert not jar.exists()
        assert sorted(path.name for path in cache.parent.iterdir()) == sorted([cache.name, "lock"])

    def test_a_changed_byte_is_found_on_demand(self, cache):
        (cache / "spark" / "a-1.jar").write_bytes(b"SPARK")
        assert jvm.jars("spark")
        assert jvm.verify() == [cache / "spark" / "a-1.jar"]

    def test_a_broken_off_fetch_leaves_nothing_that_looks_whole(self, cache, monkeypatch):
        (cache / "manifest.json").unlink()

        def break_off(java, downloads, target, report, ivy_file):
            (target / "spark").mkdir()
            raise JvmError("the network went away")

        monkeypatch.setattr(jvm, "_run_ivy", break_off)
        with pytest.raises(JvmError, match="went away"):
            jvm.jars("spark")
        assert jvm._whole(cache) is None

    def test_an_unknown_configuration_is_named(self, cache):
        with pytest.raises(JvmError, match="no configuration 'flink', only broker, spark"):
            jvm.jars("flink")

    def test_a_cache_that_cannot_be_written(self, tmp_path, monkeypatch):
        (tmp_path / "file").write_text("")
        monkeypatch.setenv(jvm.CACHE_VARIABLE, str(tmp_path / "file" / "cache"))
        with pytest.raises(JvmError, match=f"cannot keep the JVM parts in .*{jvm.CACHE_VARIABLE}"):
            jvm.jars("spark")

    def test_a_second_process_waits_for_the_first(self, cache):
        (cache / "manifest.json").rename(cache / "manifest")
        script = "from streaming.spark import jvm; print(jvm.jars('spark', report=lambda said: print(said, flush=True))[0])"
        with ExitStack() as ends:
            with jvm._locked(cache.parent / "lock", print):
                second = ends.enter_context(started([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True))
                assert "waiting for another process" in second.stdout.readline()
                (cache / "manifest").rename(cache / "manifest.json")  # what the first one was doing meanwhile
            rest, _ = second.communicate(timeout=60)
        assert rest.strip() == str(cache / "spark" / "a-1.jar")


class TestIvy:
    """Ivy itself, on a repository that is not there or lacks a jar; no network."""

    @pytest.fixture
    def fresh(self, tmp_path, monkeypatch):
        monkeypatch.setenv(jvm.CACHE_VARIABLE, str(tmp_path / "cache"))
        settings = tmp_path / "ivysettings.xml"
        monkeypatch.setenv(jvm.SETTINGS_VARIABLE, str(settings))
        return settings

    def test_a_missing_jar_is_named(self, fresh, tmp_path):
        (tmp_path / "repository").mkdir()
        fresh.write_text(
            '<ivysettings><settings defaultResolver="only"/><resolvers>'
            f'<filesystem name="only" m2compatible="true"><artifact pattern="{tmp_path}/repository/[artifact].[ext]"/></filesystem>'
            "</resolvers></ivysettings>"
        )
        with pytest.raises(
            JvmError, match=r"cannot fetch org\.apache\.spark:spark-sql-kafka-0-10_2\.1\d:\[\d\.\d\.0,[\d.]+\] and 2 more"
        ) as caught:
            jvm.jars("spark")
        assert jvm.SETTINGS_VARIABLE in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_an_unreachable_repository_is_said(self, fresh):
        fresh.write_text(
            '<ivysettings><settings defaultResolver="only"/><resolvers>'
            '<ibiblio name="only" m2compatible="true" root="http://127.0.0.1:9/"/></resolvers></ivysettings>'
        )
        with pytest.raises(JvmError, match=r"cannot fetch org\.apache\.spark:spark-sql-kafka.*Connection refused"):
            jvm.jars("spark")

    def test_a_broken_settings_file(self, fresh):
        fresh.write_text("<nonsense")
        with pytest.raises(
            JvmError, match=r"Ivy could not fetch the JVM parts: failed to load settings from file:\S+ivysettings\.xml"
        ):
            jvm.jars("spark")

    def test_a_settings_file_that_is_missing_is_named(self, fresh):
        with pytest.raises(
            JvmError, match=r"Ivy could not fetch the JVM parts: ivy configuration file not found: \S+ivysettings\.xml; "
        ):
            jvm.jars("spark")


def test_the_command_says_what_is_there(cache):
    done = subprocess.run([sys.executable, "-m", "streaming.spark.jvm", "--verify"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [f"{name}: 1 jar, 0 MiB in {cache / name}" for name in jvm.CONFIGURATIONS]


def test_the_command_fails_with_one_sentence(cache):
    done = subprocess.run(
        [sys.executable, "-m", "streaming.spark.jvm"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAVA_HOME": "/nowhere"},
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("error: Java 17 or newer is needed")
