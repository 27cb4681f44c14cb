"""The components for the database: CloudNativePG, with all that roles.sql and the programs expect of it, and the nightly
dump of a PostgreSQL of one's own, run here against a real one."""

import os
import pathlib
import subprocess
import urllib.parse

import kubernetes_validate
import pytest
import yaml
from conftest import K8S, PROGRAMS, ROOT, compose, migration, compaction
from test_network import allows, all_pods
from test_roles import owning, serving
from test_scripts import made_secrets
from test_workloads import VERSIONS

BACKUP = K8S / "components/backup"
GROUPS = ("postgresql.cnpg.io", "barmancloud.cnpg.io", "monitoring.coreos.com")
INSTANCE = {"cnpg.io/cluster": "database", "cnpg.io/podRole": "instance"}
POOLER = {"cnpg.io/poolerName": "database-pooler"}
OPERATOR = {"namespace": {"kubernetes.io/metadata.name": "cnpg-system"}, "pod": {}}
PROMETHEUS = {"namespace": {"kubernetes.io/metadata.name": "monitoring"}, "pod": {}}
BUCKET = {"DATABASE_S3_KEY_ID": "id", "DATABASE_S3_SECRET": "secret"}


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """An overlay with a database of its own."""
    folder = tmp_path_factory.mktemp("own") / "overlay"
    return compose(folder, "administration", "network-policies", "mtls", "monitoring", "cloudnative-pg")


def test_the_cluster_survives_a_node_and_is_archived(own):
    cluster = own.get("Cluster", "database")["spec"]
    assert cluster["instances"] == 3 and cluster["postgresql"]["synchronous"]["number"] == 1
    assert cluster["affinity"]["podAntiAffinityType"] == "required"
    (plugin,) = cluster["plugins"]
    store = own.get("ObjectStore", plugin["parameters"]["barmanObjectName"])["spec"]
    assert plugin["name"] == "barman-cloud.cloudnative-pg.io" and plugin["isWALArchiver"]
    assert store["configuration"]["destinationPath"].startswith("s3://") and store["retentionPolicy"] == "30d"
    backup = own.get("ScheduledBackup", "database")["spec"]
    assert (backup["cluster"]["name"], backup["method"]) == ("database", "plugin")
    assert backup["pluginConfiguration"]["name"] == plugin["name"]
    assert len(backup["schedule"].split()) == 6, "with seconds"


def test_the_connections_of_the_poolers_fit_into_the_database(own):
    pooler = own.get("Pooler", "database-pooler")["spec"]
    parameters = pooler["pgbouncer"]["parameters"]
    assert pooler["pgbouncer"]["poolMode"] == "transaction" and pooler["cluster"]["name"] == "database"
    most = int(own.get("Cluster", "database")["spec"]["postgresql"]["parameters"]["max_connections"])
    assert pooler["instances"] * int(parameters["default_pool_size"]) * len(PROGRAMS) + 20 <= most
    # What a program remembers of statements on a connection, the pooler has to remember too.
    remembered = (ROOT / "chassis/data/src/connect.rs").read_text().split("statement_cache_capacity(")[1].split(")")[0]
    assert parameters["max_prepared_statements"] == remembered
    patience = (ROOT / "chassis/data/src/db.rs").read_text().split("ACQUIRE_TIMEOUT: Duration = Duration::from_secs(")[1]
    assert parameters["query_wait_timeout"] == patience.split(")")[0]


def test_programs_know_of_the_pooler_and_jobs_go_around_it(own):
    for program in PROGRAMS:
        assert own.environment("Deployment", program)["DATABASE_POOLER"] == "true"
        for kind, name in (("Job", migration(program)), ("CronJob", compaction(program))):
            assert "DATABASE_POOLER" not in own.environment(kind, name)


def test_the_pooler_that_programs_are_tested_behind_is_like_this_one(own):
    parameters = own.get("Pooler", "database-pooler")["spec"]["pgbouncer"]["parameters"]
    script = (ROOT / "deploy/pgbouncer").read_text()
    assert f"\nMAX_PREPARED={parameters['max_prepared_statements']}\n" in script
    assert f"\nquery_wait_timeout = {parameters['query_wait_timeout']}\n" in script


def test_roles_and_passwords_are_those_that_the_programs_have(own, tmp_path):
    secrets = made_secrets(tmp_path, "--cloudnative-pg", "administration", "database", **BUCKET)
    roles = {role["name"]: role for role in own.get("Cluster", "database")["spec"]["managed"]["roles"]}
    assert set(roles) == {role(program) for program in PROGRAMS for role in (serving, owning)}
    for program in PROGRAMS:
        for name, role, host in (
            (program, serving(program), "database-pooler"), (migration(program), owning(program), "database-rw"),
        ):
            assert roles[role]["login"] is True
            kept = secrets[roles[role]["passwordSecret"]["name"]]
            address = urllib.parse.urlsplit(secrets[name]["DATABASE_URL"])
            assert (kept["username"], kept["password"]) == (role, address.password) and address.username == role
            assert (address.hostname, address.path) == (host, "/administration")
            assert address.query == "sslmode=verify-full&sslrootcert=/run/secrets/administration/database-ca.crt"
    store = own.get("ObjectStore", "database")["spec"]["configuration"]["s3Credentials"]
    for reference in store.values():
        assert secrets[reference["name"]][reference["key"]]
    documents = yaml.safe_load_all((tmp_path / "secrets.yaml").read_text())
    for document in filter(None, documents):
        followed = document["metadata"]["name"].startswith("database-role-")
        assert (document["type"] == "kubernetes.io/basic-auth") == followed
        assert ("cnpg.io/reload" in document["metadata"].get("labels", {})) == followed


def test_every_pod_that_reaches_the_database_can_check_its_certificate(own):
    names = own.get("Cluster", "database")["spec"]["certificates"]["serverAltDNSNames"]
    assert names == ["database-pooler"]
    for program in PROGRAMS:
        for kind, name in (("Deployment", program), ("Job", migration(program)), ("CronJob", compaction(program))):
            template, _ = own.pod(kind, name)
            sources = template["spec"]["volumes"][0]["projected"]["sources"]
            items = [{"key": "ca.crt", "path": "database-ca.crt"}]
            assert sources[-1]["secret"] == {"name": "database-ca", "items": items}


def test_the_network_lets_the_database_work_and_nobody_else_in(own):
    stranger = {"app": "stranger"}
    for name, pod in all_pods(own).items():
        for place in (INSTANCE, POOLER):
            assert allows(own, "Egress", pod, place, 5432) and allows(own, "Ingress", place, pod, 5432), name
            assert not allows(own, "Egress", pod, place, 8000) and not allows(own, "Ingress", place, pod, 8000), name
        assert not allows(own, "Egress", pod, "192.0.2.1", 5432), "the policy's old address"
    assert allows(own, "Egress", POOLER, INSTANCE, 5432) and allows(own, "Ingress", INSTANCE, POOLER, 5432)
    for port in (5432, 8000):
        assert allows(own, "Egress", INSTANCE, INSTANCE, port) and allows(own, "Ingress", INSTANCE, INSTANCE, port)
        assert allows(own, "Ingress", INSTANCE, OPERATOR, port)
        for place in (INSTANCE, POOLER):
            assert not allows(own, "Ingress", place, stranger, port)
            assert not allows(own, "Ingress", place, "10.0.0.7", port)
    assert allows(own, "Egress", INSTANCE, "52.218.0.1", 443), "the bucket"
    assert not allows(own, "Egress", INSTANCE, "52.218.0.1", 80)
    for place, port in ((INSTANCE, 9187), (POOLER, 9127)):
        assert allows(own, "Ingress", place, PROMETHEUS, port)


def test_the_monitors_find_the_database(own):
    for name, labels in (("database", INSTANCE), ("database-pooler", POOLER)):
        monitor = own.get("PodMonitor", name)["spec"]
        assert monitor["selector"]["matchLabels"].items() <= labels.items()
        assert [endpoint["port"] for endpoint in monitor["podMetricsEndpoints"]] == ["metrics"]


def test_a_restore_reads_the_old_bucket_and_writes_under_its_own_name(own):
    documents = list(yaml.safe_load_all((K8S / "examples/restore-to-a-point-in-time.yaml").read_text()))
    cluster = next(document for document in documents if document["kind"] == "Cluster")
    origin = own.get("Cluster", "database")
    recovery = cluster["spec"]["bootstrap"]["recovery"]
    (source,) = cluster["spec"]["externalClusters"]
    assert recovery["source"] == source["name"] and recovery["recoveryTarget"]["targetTime"].endswith("Z")
    store = origin["spec"]["plugins"][0]["parameters"]["barmanObjectName"]
    assert source["plugin"]["parameters"] == {"barmanObjectName": store, "serverName": origin["metadata"]["name"]}
    written = cluster["spec"]["plugins"][0]["parameters"]
    assert written["serverName"] == cluster["metadata"]["name"] != origin["metadata"]["name"]
    for field in ("imageName", "storage", "walStorage"):
        assert cluster["spec"][field] == origin["spec"][field], field
    policy = next(document for document in documents if document["kind"] == "NetworkPolicy")
    kubernetes_validate.validate(policy, VERSIONS[-1], strict=True)
    assert policy["spec"]["podSelector"]["matchLabels"] == {"cnpg.io/cluster": cluster["metadata"]["name"]}


@pytest.mark.parametrize("version", (VERSIONS[0], VERSIONS[-1]))
def test_both_components_are_valid_for_kubernetes(own, tmp_path, version):
    dumped = compose(tmp_path / "dumped", "administration", "network-policies", "backup")
    for build in (own, dumped):
        for document in build.documents:
            if not document["apiVersion"].startswith((*GROUPS, "cert-manager.io")):
                kubernetes_validate.validate(document, version, strict=True)


def test_the_nightly_dump_reaches_the_database_and_nothing_else(tmp_path):
    build = compose(tmp_path / "dumped", "administration", "network-policies", "backup")
    template, container = build.pod("CronJob", "backup")
    labels = template["metadata"]["labels"]
    assert allows(build, "Egress", labels, "192.0.2.1", 5432)
    assert not allows(build, "Egress", labels, "52.218.0.1", 443)
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in template["spec"]["volumes"]}
    config = volumes[mounts["/scripts"]]["configMap"]["name"]
    assert build.get("ConfigMap", config)["data"]["backup.sh"] == (BACKUP / "backup.sh").read_text()
    claim = volumes[mounts["/backup"]]["persistentVolumeClaim"]["claimName"]
    build.get("PersistentVolumeClaim", claim)


@pytest.fixture
def dump(tmp_path):
    folder, address = tmp_path / "volume", tmp_path / "DATABASE_URL"
    folder.mkdir()
    programs = pathlib.Path(os.environ.get("PSQL", "/usr/bin/psql")).parent

    def run(url, keep="14"):
        address.write_text(url)
        return subprocess.run(
            ["bash", BACKUP / "backup.sh"], capture_output=True, text=True, env={
                "PATH": f"{programs}:{os.environ['PATH']}", "DATABASE_URL_FILE": str(address), "BACKUP_DIR": str(folder),
                "BACKUP_KEEP": keep})

    run.folder, run.programs = folder, programs
    return run


def test_a_dump_is_as_its_manifest_says_and_can_be_put_back(dump):
    done = dump(os.environ["TEST_DATABASE_URL"])
    assert done.returncode == 0, done.stderr
    (made,) = dump.folder.iterdir()
    line = [line for line in (made / "manifest").read_text().splitlines() if not line.startswith("#")]
    counted = subprocess.run(["cksum", "database.dump"], cwd=made, capture_output=True, text=True).stdout.splitlines()
    assert line == counted
    listed = subprocess.run(
        [dump.programs / "pg_restore", "-l", made / "database.dump"], capture_output=True, text=True, check=True)
    assert f"dbname: {urllib.parse.urlsplit(os.environ['TEST_DATABASE_URL']).path.strip('/')}" in listed.stdout


def test_a_failed_dump_leaves_nothing_that_looks_like_one_and_removes_nothing(dump):
    for name in ("2026-01-01T011500Z", "2026-01-02T011500Z", "2026-01-03T011500Z.partial"):
        (dump.folder / name).mkdir()
    nowhere = urllib.parse.urlsplit(os.environ["TEST_DATABASE_URL"])._replace(path="/does_not_exist").geturl()
    assert dump(nowhere, keep="1").returncode != 0
    kept = {path.name for path in dump.folder.iterdir() if not path.name.endswith(".partial")}
    assert kept == {"2026-01-01T011500Z", "2026-01-02T011500Z"}
    assert dump(os.environ["TEST_DATABASE_URL"], keep="2").returncode == 0
    left = sorted(path.name for path in dump.folder.iterdir())
    assert len(left) == 2 and left[0] == "2026-01-02T011500Z" and not left[1].endswith(".partial")
