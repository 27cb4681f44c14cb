"""The Helm chart makes what Kustomize makes: the objects of both are compared one by one, for the overlays and for
components that none of them uses. HELM is the program."""

import os
import re
import subprocess

import pytest
import yaml
from conftest import OVERLAYS, PROGRAMS, ROOT, Build, compose

CHART = ROOT / "deploy/helm/administration"
# Kustomize adds the hash of its content to the name of a ConfigMap, so that pods are replaced when it changes; the
# chart has a checksum in the pods for that.
HASH = re.compile(r"^(mesh|services|gateway|billing|support|backup)-[0-9a-z]{10}$")
STAGING = {
    "settings": {
        "services": {
            "PUBLIC_URL": "https://api.staging.example.com", "MAIL_FROM": "no-reply@staging.example.com",
            "FILES_S3_BUCKET": "administration-staging",
        },
        "support": {"MAIL_DOMAIN": "mail.staging.example.com"},
    },
    "autoscaling": {"enabled": False},
    "networkPolicies": {"databaseCidr": "198.51.100.0/28"},
    "gatewayApi": {"hostnames": ["api.staging.example.com"]},
}


def run(*arguments, values=None):
    return subprocess.run(
        [os.environ.get("HELM", "helm"), *arguments, *(["--values", "-"] if values is not None else [])],
        input=yaml.safe_dump(values) if values is not None else None, capture_output=True, text=True)


def template(name, values=None):
    made = run("template", "administration", str(CHART), "--namespace", name, values=values)
    assert made.returncode == 0, made.stderr
    return Build(name, made.stdout)


def plain(value):
    """Without what either tool adds."""
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if not key.startswith(("helm.sh/", "checksum/"))}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if isinstance(value, str) and HASH.match(value):
        return HASH.match(value)[1]
    return value


def objects(build):
    found = {}
    for document in map(plain, build.documents):
        if document["kind"] == "Namespace":
            continue
        document["metadata"].pop("namespace", None)
        for metadata in (document["metadata"], document["spec"].get("template", {}).get("metadata", {})
                         if isinstance(document.get("spec"), dict) else {}):
            if metadata.get("annotations") == {}:
                del metadata["annotations"]
        key = (document["apiVersion"], document["kind"], document["metadata"]["name"])
        assert key not in found, f"{key} twice"
        found[key] = document
    return found


def assert_same(by_helm, by_kustomize):
    helm, kustomize = objects(by_helm), objects(by_kustomize)
    assert set(helm) == set(kustomize)
    for key, wanted in kustomize.items():
        assert helm[key] == wanted, key


@pytest.mark.parametrize("overlay,values", [("production", None), ("staging", STAGING)])
def test_the_chart_makes_the_objects_of_an_overlay(builds, overlay, values):
    by_kustomize = builds[overlay]
    namespace = by_kustomize.all("Namespace")[0]["metadata"]["name"]
    assert_same(template(namespace, values), by_kustomize)


SWITCHED_OFF = {
    name: {"enabled": False}
    for name in ("autoscaling", "podDisruptionBudgets", "mtls", "networkPolicies", "monitoring", "gatewayApi")
}
# The settings of the chart's values that a bare base has not.
NO_SETTINGS = {
    "image": {"registry": "administration", "tag": "dev"},
    "settings": {
        "services": dict.fromkeys(("PUBLIC_URL", "MAIL_FROM", "FILES_S3_BUCKET", "FILES_S3_REGION")),
        "support": {"MAIL_DOMAIN": None},
    },
}


@pytest.mark.parametrize("components,values", [
    ([], {}),
    (["mtls"], {"mtls": {"enabled": True}}),
    (["network-policies", "ingress"], {
        "networkPolicies": {"enabled": True, "databaseCidr": "192.0.2.1/32"}, "ingress": {"enabled": True}}),
    (["network-policies", "cloudnative-pg"], {"networkPolicies": {"enabled": True}, "cloudnativePg": {"enabled": True}}),
    (["backup", "pdb"], {"backup": {"enabled": True}, "podDisruptionBudgets": {"enabled": True}}),
], ids=lambda case: "+".join(case) if isinstance(case, list) else "")
def test_each_component_can_be_chosen(tmp_path, components, values):
    # As every overlay with mtls has them.
    production = yaml.safe_load((ROOT / "deploy/k8s/overlays/production/kustomization.yaml").read_text())
    names = {"replacements": production["replacements"]} if "mtls" in components else {}
    by_kustomize = compose(tmp_path / "overlay", "administration", *components, **names)
    assert_same(template("administration", SWITCHED_OFF | NO_SETTINGS | values), by_kustomize)


def test_values_reach_the_objects():
    build = template("elsewhere", {
        "image": {"digests": {"svc-crm": "sha256:" + "0" * 64}},
        "settings": {"mesh": {"DATABASE_POOL": 12}},
        "secrets": {"mesh": "ours"},
        "autoscaling": {"enabled": False},
        "programs": {
            "svc-crm": {"replicas": 4, "secret": "crm-login", "env": [{"name": "LOG", "value": "debug"}],
                        "resources": {"requests": {"cpu": "2"}}}},
        "cloudnativePg": {"enabled": True, "destinationPath": "s3://ours/", "storage": "7Gi"},
        "backup": {"enabled": True, "keep": 3, "storage": "9Gi"},
        "monitoring": {"namespace": "prometheus"},
    })
    assert build.get("ConfigMap", "mesh")["data"]["DATABASE_POOL"] == "12"
    deployment = build.get("Deployment", "svc-crm")["spec"]
    pod, container = build.pod("Deployment", "svc-crm")
    assert deployment["replicas"] == 4 and container["image"].endswith("/svc-crm@sha256:" + "0" * 64)
    assert container["env"][-1] == {"name": "LOG", "value": "debug"}
    assert container["resources"] == {"requests": {"cpu": "2", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
    sources = pod["spec"]["volumes"][0]["projected"]["sources"]
    names = [source["secret"]["name"] for source in sources if "secret" in source]
    assert names == ["crm-login", "svc-crm-tls", "ours", "outside", "database-ca"]
    assert build.get("ObjectStore", "database")["spec"]["configuration"]["destinationPath"] == "s3://ours/"
    assert build.get("Cluster", "database")["spec"]["storage"]["size"] == "7Gi"
    assert build.get("PersistentVolumeClaim", "backup")["spec"]["resources"]["requests"]["storage"] == "9Gi"
    _, dump = build.pod("CronJob", "backup")
    assert {"name": "BACKUP_KEEP", "value": "3"} in dump["env"]
    for policy in ("prometheus-accepted", "database-accepts"):
        assert "'prometheus'" in str(build.get("NetworkPolicy", policy))


def test_migrations_come_before_programs_and_settings_replace_pods():
    before, after = template("n"), template("n", {"settings": {"support": {"MAIL_DOMAIN": "other.example.com"}}})
    for kind, weight in (("ServiceAccount", "-5"), ("Job", "0")):
        for document in before.all(kind):
            annotations = document["metadata"]["annotations"]
            assert annotations == {"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-weight": weight}
    changed = {
        program for program in PROGRAMS
        if before.pod("Deployment", program)[0]["metadata"] != after.pod("Deployment", program)[0]["metadata"]}
    assert changed == {"svc-support"}


@pytest.mark.parametrize("values,complaint", [
    ({"image": {"tga": "1"}}, "tga"),
    ({"programs": {"svc-biling": {}}}, "svc-biling"),
    ({"image": {"digests": {"gateway": "latest"}}}, "sha256"),
    ({"networkPolicies": {"databaseCidr": "db.example.com"}}, "databaseCidr"),
    ({"settings": {"mesh": {"database_pool": 8}}}, "database_pool"),
    ({"ingress": {"enabled": True}}, "one way in is enough"),
])
def test_values_that_make_no_sense_are_refused(values, complaint):
    refused = run("template", "administration", str(CHART), values=values)
    assert refused.returncode != 0 and complaint in refused.stderr, refused.stderr


def test_helm_finds_no_fault_in_the_chart():
    linted = run("lint", "--strict", str(CHART))
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_every_overlay_but_local_has_its_values_here():
    assert set(OVERLAYS) - {"local"} == {"production", "staging"}
