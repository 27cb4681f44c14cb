"""What the documents say about opening the bucket without an access key fits the overlays."""

import re
import textwrap

import pytest

from conftest import K8S, REAL, ROOT, SERVICES, kustomize

SECTION = "## The bucket without an access key\n"


def keep_files():
    """The services that do, as their sources say."""
    says = lambda name: "const KEEPS_FILES: bool = true" in (ROOT / name / "src/lib.rs").read_text()
    return {name for name in SERVICES if says(name)}


@pytest.fixture(scope="module")
def examples():
    """The YAML of the section."""
    section = (ROOT / "docs/kubernetes.md").read_text().split(SECTION)[1].split("\n## ")[0]
    blocks = re.findall(r"^  ```yaml\n(.*?)^  ```$", section, re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for block in blocks]


@pytest.fixture(params=REAL)
def overlay(request, examples, tmp_path):
    """An overlay of one's own with both examples in it."""
    patches, policy = examples
    (tmp_path / "policy.yaml").write_text(policy)
    base = f"{'../' * len(tmp_path.parts[1:])}{str(K8S / 'overlays' / request.param).removeprefix('/')}"
    (tmp_path / "kustomization.yaml").write_text(f"resources: [{base}, policy.yaml]\n{patches}")
    return kustomize(tmp_path)


def test_those_who_keep_files_get_the_role_and_nobody_else(overlay):
    accounts = {account["metadata"]["name"]: account["metadata"] for account in overlay.all("ServiceAccount")}
    named = {name for name, it in accounts.items() if "eks.amazonaws.com/role-arn" in it.get("annotations", {})}
    assert named == keep_files()
    for name in named:
        template, _ = overlay.pod("Deployment", name)
        assert template["spec"]["serviceAccountName"] == name


def test_those_who_keep_files_reach_the_agent_and_nobody_else(overlay):
    policy = overlay.get("NetworkPolicy", "reach-pod-identity")["spec"]
    (choice,) = policy["podSelector"]["matchExpressions"]
    assert choice["operator"] == "In"
    chosen = {
        document["metadata"]["name"] for document in overlay.all("Deployment")
        if document["spec"]["template"]["metadata"]["labels"].get(choice["key"]) in choice["values"]
    }
    assert chosen == keep_files()
