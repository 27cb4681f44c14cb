"""What an internal team has in its namespace fits what the mesh asks of it."""

import yaml

from conftest import K8S, PROGRAMS


def example():
    documents = yaml.safe_load_all((K8S / "examples/team.yaml").read_text())
    return {(document["kind"], document["metadata"]["name"]): document["spec"] for document in documents}


def test_the_certificate_of_a_team_comes_from_its_own_authority():
    documents = example()
    shown = documents["Certificate", "team-reporting"]
    issuer = documents["Issuer", shown["issuerRef"]["name"]]
    (authority,) = (it for (kind, _), it in documents.items() if kind == "Certificate" and it.get("isCA"))
    assert issuer["ca"]["secretName"] == authority["secretName"]
    assert documents["Issuer", authority["issuerRef"]["name"]] == {"selfSigned": {}}
    # What comes later must not need another bundle.
    assert authority["privateKey"]["rotationPolicy"] == "Never"


def test_its_names_are_those_that_the_mesh_believes_and_serves(real):
    shown = example()["Certificate", "team-reporting"]
    source = (K8S.parents[1] / "chassis/rpc/src/tls/teams.rs").read_text()
    assert 'const TEAM: &str = "team-";' in source
    assert shown["usages"] == ["client auth", "digital signature"]
    for name in shown["dnsNames"]:
        assert name.startswith("team-") and name not in PROGRAMS
    for program in PROGRAMS:
        assert "team-*" in real.environment("Deployment", program)["TLS_CALLERS"].split(",")
