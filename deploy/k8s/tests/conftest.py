"""What the checks of the manifests share: the built overlays, the programs of the workspace, and their settings as the
sources declare them. Nothing here needs a cluster or a compiler."""

import os
import pathlib
import re
import subprocess
import tomllib

import pytest
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[3]
K8S = ROOT / "deploy/k8s"
OVERLAYS = sorted(path.name for path in (K8S / "overlays").iterdir())
# Those that stand for real use; `local` is for one machine.
REAL = [name for name in OVERLAYS if name != "local"]
SECRETS = "/run/secrets/administration/"
# What is in the settings of the pods but no setting of a program.
NO_SETTING = {"MESH_SCHEME"}


def members():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["members"]


def programs():
    """The gateway and the services: every member at the top with a main.rs."""
    return [name for name in members() if "/" not in name and (ROOT / name / "src/main.rs").exists()]


PROGRAMS = programs()
SERVICES = [name for name in PROGRAMS if name != "gateway"]


def area(program):
    return program.removeprefix("svc-")


def migration(program):
    return f"migrate-{area(program)}"


def compaction(program):
    return f"compact-log-{area(program)}"


class Setting:
    def __init__(self, attribute):
        self.name = re.search(r'env\s*=\s*"(\w+)"', attribute)[1]
        self.secret = "hide_env_values" in attribute
        default = re.search(r'default_value(?:_t)?\s*=\s*"?([^",)]*)', attribute)
        self.default = default[1].strip() if default else None


def declared(text):
    attributes = re.findall(r"#\[arg\((.*?)\)\]\s*pub \w+:", text, re.DOTALL)
    found = [Setting(attribute) for attribute in attributes if "env" in attribute]
    return {setting.name: setting for setting in found}


def struct(text, name):
    return re.search(rf"pub struct {name} \{{(.*?)\n\}}", text, re.DOTALL)[1]


def settings_of(program):
    """The settings of a program by name, from its clap declarations and those of the crates in its folder."""
    def layer(path):
        return (ROOT / "chassis" / path).read_text()

    config = layer("service/src/config.rs")
    every = ("data/src/settings.rs", "rpc/src/tls/settings.rs", "service/src/stage.rs", "service/src/telemetry.rs",
             "work/src/worker/settings.rs")
    known = declared(struct(config, "Settings"))
    for path in every:
        known |= declared(layer(path))
    if program == "gateway":
        return known | declared((ROOT / "gateway/src/settings.rs").read_text())
    known |= declared(struct(config, "ServiceSettings"))
    for path in ("work/src/files/settings.rs", "work/src/mail/settings.rs"):
        known |= declared(layer(path))
    for member in members():
        if member == program or member.startswith(f"{program}/"):
            for file in (ROOT / member / "src").rglob("*.rs"):
                known |= declared(file.read_text())
    return known


class Build:
    """An overlay as kustomize builds it."""

    def __init__(self, name, text):
        self.name, self.text = name, text
        self.documents = [document for document in yaml.safe_load_all(text) if document]

    def all(self, kind):
        return [document for document in self.documents if document["kind"] == kind]

    def get(self, kind, name):
        found = [document for document in self.all(kind) if document["metadata"]["name"] == name]
        assert len(found) == 1, f"{self.name} has {len(found)} {kind} {name}"
        return found[0]

    def pod(self, kind, name):
        """The pod template of a workload, with its one container beside it."""
        spec = self.get(kind, name)["spec"]
        template = (spec["jobTemplate"]["spec"] if kind == "CronJob" else spec)["template"]
        (container,) = template["spec"]["containers"]
        return template, container

    def pods(self):
        """Every pod template of ours: name, template, container."""
        for kind in ("Deployment", "Job", "CronJob"):
            for document in self.all(kind):
                name = document["metadata"]["name"]
                yield f"{kind} {name}", *self.pod(kind, name)

    def environment(self, kind, name):
        """The variables as the kubelet would set them."""
        _, container = self.pod(kind, name)
        values = {}
        for source in container.get("envFrom", []):
            values |= self.get("ConfigMap", source["configMapRef"]["name"])["data"]
        earlier = {}
        for variable in container.get("env", []):
            if "value" in variable:
                expand = lambda match: earlier.get(match[1], match[0])
                value = re.sub(r"\$\((\w+)\)", expand, variable["value"])
            else:
                key = variable["valueFrom"]["configMapKeyRef"]
                value = self.get("ConfigMap", key["name"])["data"][key["key"]]
            earlier[variable["name"]] = value
        return values | earlier

    def calls(self, program):
        """Whom a program calls, as its settings say: (service, host, port, scheme, what for)."""
        found = set()
        environment = self.environment("Deployment", program)
        for variable in ("PEERS", "LISTENERS"):
            for entry in filter(None, environment.get(variable, "").split(",")):
                address, *types = entry.split(";")
                service, scheme, host, port = re.fullmatch(r"(\w+)=(https?)://([\w-]+):(\d+)", address).groups()
                what = "call" if variable == "PEERS" else ";".join(["events", *types])
                found.add((service, host, int(port), scheme, what))
        return found


def kustomize(name, folder=None):
    built = subprocess.run(
        [os.environ.get("KUBECTL", "kubectl"), "kustomize", str(folder or K8S / "overlays" / name)],
        capture_output=True, text=True,
    )
    assert built.returncode == 0, built.stderr
    return Build(name, built.stdout)


def compose(folder, name, *components, resources=("base",), **more):
    """An overlay as an operator may make one, of components that none of ours uses."""
    place = lambda path: os.path.relpath(K8S / path, folder)
    folder.mkdir(exist_ok=True)
    (folder / "kustomization.yaml").write_text(yaml.safe_dump({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "namespace": name,
        "resources": [place(path) for path in resources],
        "components": [place(f"components/{component}") for component in components], **more,
    }))
    return kustomize(name, folder)


@pytest.fixture(scope="session")
def builds():
    return {name: kustomize(name) for name in OVERLAYS}


@pytest.fixture(params=OVERLAYS)
def build(request, builds):
    return builds[request.param]


@pytest.fixture(params=REAL)
def real(request, builds):
    return builds[request.param]
