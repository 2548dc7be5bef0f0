"""The Helm chart, by the real helm: it renders in every way that its values allow, and what it renders is held against schemas and ourselves."""

from __future__ import annotations

import copy
import io
import json
import os
import re
import subprocess
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from streaming.cli import app
from streaming.config.settings import load
from tests.certificates import Authority
from tests.needs import needs, path_of

ROOT = Path(__file__).parents[2]
HELM = ROOT / "deploy" / "helm"
CHART = HELM / "rebalance-monitor"
KUBERNETES = ("1.25", "1.37")
LEAST: dict[str, Any] = {"image": {"repository": "registry.example/rebalance-monitor"}, "kafka": {"bootstrapServers": "kafka:9094"}}
LISTENERS = [{"port": 9092, "broker": "kafka-0:9093"}, {"port": 9093, "broker": "kafka-1:9093"}]
RECEIVER = '[topics]\nmirror = "frames"\n[notify.alertmanager.main]\nurl = "http://alertmanager:9093"\n'
SASL = {"mechanism": "SCRAM-SHA-512", "username": "monitor", "existingSecret": "kafka"}
MONITORING = {name: {"enabled": True} for name in ("serviceMonitor", "podMonitor", "prometheusRule", "dashboards")}

MATRIX: dict[str, dict[str, Any]] = {
    "least": {},
    "job alone": {"web": {"enabled": False}, "topics": {"enabled": False}, "serviceAccount": {"create": False}},
    "no job": {"job": {"enabled": False}},
    "state elsewhere": {"job": {"persistence": {"enabled": False}}, "config": '[job]\nstate = "s3a://bucket/monitor"\n'},
    "a claim that is there": {"job": {"persistence": {"existingClaim": "monitor"}}},
    "everything": {
        "cluster": "prod",
        "config": RECEIVER,
        "image": {"digest": f"sha256:{'0' * 64}"},
        "imagePullSecrets": [{"name": "registry"}],
        "notify": {"enabled": True, "podAnnotations": {"a": "b"}, "podLabels": {"c": "d"}},
        "tap": {"enabled": True, "listeners": LISTENERS, "nodeSelector": {"disk": "fast"}, "tolerations": [{"operator": "Exists"}]},
        "web": {"hosts": ["rebalances.example"], "hideAddresses": True, "existingSecret": "page"},
        "job": {"persistence": {"storageClass": "fast"}, "affinity": {"nodeAffinity": {}}},
        "monitoring": MONITORING,
        "networkPolicy": {"enabled": True, "webFrom": [{"podSelector": {}}], "metricsFrom": [{"podSelector": {}}], "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}]},
        "extraEnv": [{"name": "REBALANCE_MONITOR_NOTIFY__STALLED_S", "value": "90"}],
        "extraEnvFrom": [{"secretRef": {"name": "aws"}}],
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/etc/ssl/ca"}],
        "serviceAccount": {"annotations": {"role": "arn"}},
    },
    "TLS": {"kafka": {"securityProtocol": "SSL", "tls": {"existingSecret": "certificates"}}, "tap": {"enabled": True, "listeners": LISTENERS}},
    "mutual TLS": {
        "kafka": {"securityProtocol": "SSL", "tls": {"existingSecret": "certificates", "certificateKey": "tls.crt", "keyKey": "tls.key"}},
        "tap": {
            "enabled": True,
            "listeners": LISTENERS,
            "clientTls": {"existingSecret": "front", "requireClientCertificate": True},
            "brokerTls": {"existingSecret": "behind", "showCertificate": True},
        },
    },
    "SASL": {"kafka": {"securityProtocol": "SASL_PLAINTEXT", "sasl": SASL}, "notify": {"enabled": True}, "config": RECEIVER},
    "SASL and TLS": {
        "kafka": {"securityProtocol": "SASL_SSL", "sasl": SASL, "tls": {"existingSecret": "certificates"}},
        "tap": {"enabled": True, "listeners": LISTENERS, "producerSecret": "producer"},
    },
    "SASL and what the system trusts": {"kafka": {"securityProtocol": "SASL_SSL", "sasl": SASL}},
    "a tap on each node": {
        "tap": {"enabled": True, "kind": "DaemonSet", "listeners": [{"port": 9092, "broker": "$(HOST_IP):9093"}], "extraArgs": ["--buffer-mib", "256"]},
        "networkPolicy": {"enabled": True},
    },
    "a tap that rewrites": {
        "tap": {
            "enabled": True,
            "replicas": 1,
            "listeners": [{"port": 9092, "broker": "bootstrap.example:9096"}],
            "rewrite": {"enabled": True, "firstPort": 9200, "brokers": 6, "advertise": "kafka.internal.example"},
        },
    },
    "a tap for others": {"tap": {"enabled": True, "listeners": LISTENERS, "service": {"type": "LoadBalancer", "annotations": {"lb": "internal"}}}},
}  # fmt: skip

pytestmark = needs("helm")
cases = pytest.mark.parametrize("case", MATRIX)


def merged(base: Any, over: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(over, dict):
        return copy.deepcopy(over)
    return {**base, **{key: merged(base.get(key), value) for key, value in over.items()}}


def helm(*arguments, values):
    command = [path_of("helm"), *arguments, str(CHART), "--values", "-"]
    return subprocess.run(command, input=json.dumps(values), capture_output=True, text=True, check=False, timeout=120)


def rendered(values, *, release="r"):
    done = helm("template", release, "--kube-version", "1.30.0", "--namespace", "kafka", values=merged(LEAST, values))
    assert done.returncode == 0, done.stderr
    return done.stdout


def objects(text) -> list[dict[str, Any]]:
    return [found for found in YAML(typ="safe").load_all(io.StringIO(text)) if found]


def of_kind(found, *kinds):
    return [one for one in found if one["kind"] in kinds]


def containers(found) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each container with the specification of its pod."""
    for one in found:
        spec = one.get("spec") or {}
        pod = spec if one["kind"] == "Pod" else spec.get("template", {}).get("spec")
        for container in (pod or {}).get("containers", ()):
            yield container, pod


@pytest.fixture(scope="module")
def everywhere():
    return {case: objects(rendered(values)) for case, values in MATRIX.items()}


def test_helm_lint_has_no_complaint():
    done = helm("lint", "--strict", "--kube-version", "1.30.0", values=merged(LEAST, MATRIX["everything"]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[WARNING]" not in done.stdout


@cases
@pytest.mark.parametrize("kubernetes", KUBERNETES)
def test_what_is_rendered_is_what_kubernetes_knows(everywhere, case, kubernetes):
    validator = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is missing: .venv/bin/pip install kubernetes-validate"
    )
    own = [one for one in everywhere[case] if "monitoring.coreos.com" not in one["apiVersion"]]
    assert own
    for one in own:
        validator.validate(one, kubernetes, strict=True)


def schema_of(resource):
    """The schema of a custom resource, out of the definitions in a folder; null is allowed nowhere, nor is an unknown key."""
    folder = os.environ.get("KUBERNETES_CRDS")
    if folder is None:
        pytest.skip(
            "KUBERNETES_CRDS names no folder with the CRDs (YAML) of the operators of Prometheus and Spark, out of their repositories"
        )
    group, _, version = resource["apiVersion"].partition("/")
    for text in (file.read_text() for file in sorted(Path(folder).glob("*.y*ml"))):
        if f"kind: {resource['kind']}\n" not in text or f"group: {group}\n" not in text:
            continue  # they have a megabyte each
        for definition in of_kind(objects(text), "CustomResourceDefinition"):
            spec = definition["spec"]
            if (spec["group"], spec["names"]["kind"]) == (group, resource["kind"]):
                (found,) = [each["schema"]["openAPIV3Schema"] for each in spec["versions"] if each["name"] == version]
                return closed(merged(found, {"properties": {name: {} for name in ("apiVersion", "kind", "metadata")}}))
    pytest.skip(f"the folder KUBERNETES_CRDS has no definition of {resource['kind']} in {group}")
    return None


def closed(schema):
    """Kubernetes prunes unknown keys in silence; here they are mistakes."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: closed(value) for key, value in schema.items() if key != "pattern" or not str(value).startswith("^(?i)")}  # Go's
    if "properties" in made and "additionalProperties" not in made and not made.get("x-kubernetes-preserve-unknown-fields"):
        made["additionalProperties"] = False
    return {"anyOf": [{"type": "integer"}, {"type": "string"}]} if made.get("x-kubernetes-int-or-string") else made


@pytest.mark.long
@pytest.mark.parametrize("kind", ["ServiceMonitor", "PodMonitor", "PrometheusRule"])
def test_what_the_prometheus_operator_gets_is_what_it_knows(everywhere, kind):
    (one,) = of_kind(everywhere["everything"], kind)
    jsonschema.validate(one, schema_of(one))


@pytest.mark.long
@pytest.mark.parametrize("example", sorted(HELM.glob("examples/spark-*.yaml")), ids=lambda path: path.name)
def test_what_the_operators_of_spark_get_is_what_they_know(example):
    validator = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is missing: .venv/bin/pip install kubernetes-validate"
    )
    found = objects(example.read_text())
    (application,) = of_kind(found, "SparkApplication")
    for one in found:
        if one is not application:
            validator.validate(one, KUBERNETES[-1], strict=True)
    jsonschema.validate(application, schema_of(application))


def test_the_tap_beside_an_application_is_what_kubernetes_and_the_program_know():
    from typer.main import get_command

    validator = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is missing: .venv/bin/pip install kubernetes-validate"
    )
    (deployment,) = objects((HELM / "examples" / "tap-beside-an-application.yaml").read_text())
    validator.validate(deployment, KUBERNETES[-1], strict=True)
    (tap,) = deployment["spec"]["template"]["spec"]["initContainers"]
    command = get_command(app)
    with command.make_context("rebalance-monitor", [*tap["args"]]) as context:
        _, chosen, rest = command.resolve_command(context, [*tap["args"]])
        chosen.make_context("tap", rest, parent=context)


@pytest.mark.parametrize("name", ["watch-on-each-node", "watch-beside-an-application"])
def test_a_watch_is_what_kubernetes_and_the_program_know(name):
    from typer.main import get_command

    (one,) = objects((HELM / "examples" / f"{name}.yaml").read_text())
    pod = one["spec"]["template"]["spec"]
    (watch,) = [each for each in (*pod.get("initContainers", ()), *pod["containers"]) if each["name"] == "watch"]
    assert watch["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_RAW"]}
    assert pod.get("hostNetwork", False) is (one["kind"] == "DaemonSet")
    command = get_command(app)
    with command.make_context("rebalance-monitor", [*watch["args"]]) as context:
        _, chosen, rest = command.resolve_command(context, [*watch["args"]])
        chosen.make_context("watch", rest, parent=context)
    validator = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is missing: .venv/bin/pip install kubernetes-validate"
    )
    validator.validate(one, KUBERNETES[-1], strict=True)


def test_a_tap_that_rewrites_has_a_port_for_each_broker(everywhere):
    found = everywhere["a tap that rewrites"]
    (service,) = [one for one in of_kind(found, "Service") if one["metadata"]["name"].endswith("-tap")]
    (tap,) = [container for container, _ in containers(found) if container["name"] == "tap"]
    ports = [9092, *range(9200, 9206)]
    assert [port["port"] for port in service["spec"]["ports"]] == ports
    assert [port["containerPort"] for port in tap["ports"]] == [19930, *ports]
    assert {"--rewrite", "--ports=9200-9205", "--advertise=kafka.internal.example"} <= {*tap["args"]}


@needs("promtool")
def test_the_rules_in_the_chart_are_those_that_are_tested(everywhere, tmp_path):
    (rule,) = of_kind(everywhere["everything"], "PrometheusRule")
    with (tmp_path / "rules.yml").open("w") as file:
        YAML(typ="safe").dump(rule["spec"], file)
    checked = subprocess.run(
        [path_of("promtool"), "check", "rules", "rules.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stderr
    assert rule["spec"] == YAML(typ="safe").load(ROOT / "deploy" / "prometheus" / "rebalance-monitor.rules.yml")


def test_the_dashboards_in_the_chart_are_those_that_are_tested(everywhere):
    (found,) = [one for one in of_kind(everywhere["everything"], "ConfigMap") if one["metadata"]["name"].endswith("-dashboards")]
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert {name: json.loads(text) for name, text in found["data"].items()} == {
        file.name: json.loads(file.read_text()) for file in (ROOT / "deploy" / "grafana").iterdir()
    }


def test_the_values_in_the_documents_render_each_with_the_first():
    walk = (ROOT / "docs" / "deploying.md").read_text().partition("## On Kubernetes")[2].partition("## On a Spark cluster")[0]
    first, *more = [YAML(typ="safe").load(textwrap.dedent(block)) for block in re.findall(r"```yaml\n(.*?)```", walk, re.DOTALL)]
    kinds = [{one["kind"] for one in objects(rendered(merged(first, values)))} for values in ({}, *more)]
    assert len(kinds) == 6
    assert set().union(*kinds) >= {"StatefulSet", "Deployment", "DaemonSet", "ServiceMonitor", "PrometheusRule", "NetworkPolicy"}


@cases
def test_every_container_is_kept_small(everywhere, case):
    """No root, nothing to write to but volumes, no token of Kubernetes, no variables of services beside those of the monitor."""
    found = list(containers(everywhere[case]))
    assert found
    for container, pod in found:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001)
        assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (False, False)
        mounted = {mount["name"] for mount in container["volumeMounts"]}
        assert mounted <= {volume["name"] for volume in pod["volumes"]} | {"state"}
        assert {"/tmp", "/var/lib/rebalance-monitor"} <= {mount["mountPath"] for mount in container["volumeMounts"]}


@cases
def test_every_command_line_is_one_that_the_program_takes(everywhere, case, tmp_path):
    from typer.main import get_command

    command = get_command(app)
    lines = [container["args"] for container, _ in containers(everywhere[case]) if "command" not in container]
    for line in lines:
        with command.make_context("rebalance-monitor", [*line]) as context:
            name, chosen, rest = command.resolve_command(context, [*line])
            taken = ["--help"] if name == "config" else rest  # its subcommand is found later
            if name != "config":
                chosen.make_context(name, taken, parent=context)
    if case == "everything":
        assert {line[0] for line in lines} == {"run", "notify", "web", "tap", "topics", "config"}


@cases
def test_the_configuration_is_one_that_the_monitor_takes(everywhere, case, tmp_path, monkeypatch):
    """With the files that Kubernetes would mount."""
    authority = Authority(tmp_path / "authority")
    client = authority.identity("client")
    for folder in ("tls", "sasl", "config"):
        (tmp_path / "etc" / folder).mkdir(parents=True)
    (tmp_path / "etc" / "sasl" / "password").write_text("secret")
    for name, written in {"ca.crt": authority.certificate, "tls.crt": client.certificate, "tls.key": client.key}.items():
        (tmp_path / "etc" / "tls" / name).write_bytes(written.read_bytes())
    (config,) = [one for one in of_kind(everywhere[case], "ConfigMap") if one["metadata"]["name"] == "r-rebalance-monitor"]
    file = tmp_path / "etc" / "config" / "monitor.toml"
    file.write_text(config["data"]["monitor.toml"])
    for container, _ in containers(everywhere[case]):
        if container["name"] not in {"job", "notify", "web", "topics", "config"}:
            continue
        with monkeypatch.context() as patched:
            for variable in container.get("env", ()):
                patched.setenv(variable["name"], variable["value"].replace("/etc/rebalance-monitor", str(tmp_path / "etc")))
            configuration = load(file)
        assert configuration.kafka.bootstrap_servers == "kafka:9094"
        assert configuration.kafka.security_protocol == MATRIX[case].get("kafka", {}).get("securityProtocol", "PLAINTEXT")
        if container["name"] == "job":
            assert (configuration.metrics.enabled, configuration.metrics.listen, configuration.job.cores) == (
                True,
                "0.0.0.0:19930",
                2,
            )


def test_the_tap_mirrors_to_the_topic_that_the_others_read(everywhere):
    (tap,) = [container for container, _ in containers(everywhere["everything"]) if container["name"] == "tap"]
    assert "--topic=$(MIRROR_TOPIC)" in tap["args"]
    assert {"name": "MIRROR_TOPIC", "value": "frames"} in tap["env"]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"image": {"repository": ""}}, "image.repository is missing"),
        ({"kafka": {"bootstrapServers": ""}}, "kafka.bootstrapServers is missing"),
        ({"kafka": {"securityProtocol": "SASL_SSL"}}, "kafka.sasl.mechanism is missing"),
        (
            {"kafka": {"securityProtocol": "SASL_SSL", "sasl": SASL | {"existingSecret": ""}}},
            "kafka.sasl.existingSecret is missing",
        ),
        ({"tap": {"enabled": True}}, "tap.listeners is empty"),
        (
            {"tap": {"enabled": True, "listeners": LISTENERS, "rewrite": {"enabled": True}}},
            "tap.rewrite needs tap.kind Deployment and tap.replicas 1",
        ),
        ({"config": "[topics\nmirror = 1"}, "config is not TOML: "),
        ({"kafka": MATRIX["SASL"]["kafka"], "tap": {"enabled": True, "listeners": LISTENERS}}, "tap.producerSecret is missing"),
        ({"job": {"driverMemory": "lots"}}, "/job/driverMemory"),
        ({"tap": {"listeners": [{"port": 19930, "broker": "kafka:9093"}]}}, "/tap/listeners/0/port"),
        ({"kafka": {"bootstrap": "kafka:9094"}}, "additional properties 'bootstrap' not allowed"),
        ({"netwerkPolicy": {}}, "additional properties 'netwerkPolicy' not allowed"),
    ],
)
def test_values_that_cannot_work_are_refused_in_words(values, said):
    done = helm("template", "r", "--kube-version", "1.30.0", values=merged(LEAST, values))
    assert done.returncode == 1
    assert said in done.stderr, done.stderr


def leaves(values, path=()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key), value


def other(path, value):
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case list():
            return {"hosts": ["h"], "extraArgs": ["--status-every=5"], "listeners": LISTENERS[:1]}.get(
                path[-1], [{"name": "another", "value": "v", "port": 1}]
            )
        case dict():
            return {"another": "value"}
    known = {
        "kind": "DaemonSet",
        "pullPolicy": "Always",
        "type": "NodePort",
        "securityProtocol": "SASL_PLAINTEXT",
        "mechanism": "PLAIN",
    }
    known |= {
        "digest": f"sha256:{'1' * 64}",
        "interval": "7s",
        "scrapeTimeout": "7s",
        "driverMemory": "2g",
        "cpu": "7",
        "memory": "7Gi",
        "size": "7Gi",
    }
    return known.get(path[-1], "another")


@pytest.mark.long
def test_every_value_does_something():
    """Each is changed on its own, where it can matter: some exclude one another."""
    tokens = re.compile(r"(?m)^  token: .*$")
    defaults = YAML(typ="safe").load(CHART / "values.yaml")
    bases = [
        merged(
            LEAST,
            merged(
                MATRIX["everything"],
                {"job": {"persistence": {"storageClass": ""}}, "image": {"digest": ""}, "web": {"existingSecret": ""}},
            ),
        )
    ]
    bases += [
        merged(bases[0], {"kafka": MATRIX[case].get("kafka", {}), "tap": {"producerSecret": "p", **MATRIX[case].get("tap", {})}})
        for case in ("mutual TLS", "SASL and TLS", "a tap that rewrites")
    ]
    whole = [tokens.sub("", rendered(base)) for base in bases]
    idle = []
    for path, value in leaves(defaults):
        for base, before in zip(bases, whole, strict=True):
            changed: Any = copy.deepcopy(base)
            place = changed
            for key in path[:-1]:
                place = place.setdefault(key, {})
            place[path[-1]] = other(path, place.get(path[-1], value))
            done = helm("template", "r", "--kube-version", "1.30.0", "--namespace", "kafka", values=changed)
            if tokens.sub("", done.stdout) != before:
                break
        else:
            idle.append(".".join(path))
    assert idle == []
