"""Every program is there, safe, asked for its health, stopped in time and given what it needs."""

import re

import kubernetes_validate
import pytest
from conftest import PROGRAMS, ROOT, SECRETS, SERVICES, migration, compaction

# preStop.sleep is on by default from 1.30 on; the last is the newest that the validator knows.
VERSIONS = ["1.30", "1.32", "1.34", "1.37"]
OTHER_GROUPS = ("cert-manager.io", "monitoring.coreos.com", "gateway.networking.k8s.io")
DNS_REMEMBERS = 30
TO_SPARE = 5


def seconds(text, constant):
    return int(re.search(rf"{constant}: Duration = Duration::from_secs\((\d+)\)", text)[1])


@pytest.mark.parametrize("version", VERSIONS)
def test_every_document_is_valid_for_kubernetes(build, version):
    for document in build.documents:
        if document["apiVersion"].startswith(OTHER_GROUPS):
            continue
        kubernetes_validate.validate(document, version, strict=True)


def test_documents_of_other_groups_have_only_known_fields(real):
    known = {
        "Certificate": {
            "commonName", "dnsNames", "duration", "isCA", "issuerRef", "privateKey", "renewBefore", "secretName",
            "usages",
        },
        "Issuer": {"ca", "selfSigned"},
        "PodMonitor": {"podMetricsEndpoints", "podTargetLabels", "selector"},
        "PrometheusRule": {"groups"},
        "HTTPRoute": {"hostnames", "parentRefs", "rules"},
    }
    for document in real.documents:
        if document["apiVersion"].startswith(OTHER_GROUPS):
            assert set(document["spec"]) <= known[document["kind"]], document["metadata"]["name"]


def test_every_program_of_the_workspace_is_deployed_and_migrated(build):
    assert len(PROGRAMS) == 7
    deployed = {document["metadata"]["name"] for document in build.all("Deployment")}
    migrated = {document["metadata"]["name"] for document in build.all("Job")}
    assert deployed == set(PROGRAMS)
    assert migrated == {migration(program) for program in PROGRAMS}
    assert {document["metadata"]["name"] for document in build.all("CronJob")} == {compaction(it) for it in PROGRAMS}
    for program in PROGRAMS:
        build.get("Service", program)
        build.get("ServiceAccount", program)


def test_a_workload_runs_its_own_program(build):
    for program in PROGRAMS:
        for kind, name, argument in (
            ("Deployment", program, "serve"),
            ("Job", migration(program), "migrate"),
            ("CronJob", compaction(program), "compact-log"),
        ):
            template, container = build.pod(kind, name)
            image = container["image"].rsplit("/", 1)[1].split(":")[0]
            assert (image, container["args"]) == (program, [argument])
            assert template["spec"]["serviceAccountName"] == program
            assert template["metadata"]["labels"]["app.kubernetes.io/name"] == program
            assert template["metadata"]["labels"]["app.kubernetes.io/component"] == argument


def test_all_images_of_a_release_come_from_one_place_with_one_tag(real):
    images = [container["image"] for _, _, container in real.pods()]
    places = {(image.rsplit("/", 1)[0], image.rsplit(":", 1)[1]) for image in images}
    assert len(places) == 1
    assert places.pop()[1] != "latest"


def test_pods_have_no_rights(build):
    for name, template, container in build.pods():
        pod = template["spec"]
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["enableServiceLinks"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["runAsUser"] == 65532, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
        }, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod), name
    for account in build.all("ServiceAccount"):
        assert account["automountServiceAccountToken"] is False
    labels = build.all("Namespace")[0]["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_pods_ask_for_cpu_and_memory_and_have_a_limit_of_memory(build):
    for name, _, container in build.pods():
        resources = container["resources"]
        assert {"cpu", "memory"} == set(resources["requests"]), name
        assert {"memory"} == set(resources["limits"]), name


def test_liveness_never_asks_the_database(build):
    server = (ROOT / "chassis/service/src/server.rs").read_text()
    assert '.route("/healthz", get(|| async { "ok\\n" }))' in server
    for program in PROGRAMS:
        _, container = build.pod("Deployment", program)
        for probe in ("livenessProbe", "startupProbe"):
            assert container[probe]["httpGet"] == {"path": "/healthz", "port": "operators"}, program
        readiness = container["readinessProbe"]
        assert readiness["httpGet"] == {"path": "/readyz", "port": "operators"}, program
        # So long a service that is away is waited for, and a database; the answer must come before the probe gives up.
        for source, name in (("gateway/src/readiness.rs", "PEER_TIMEOUT"), ("chassis/data/src/probe.rs", "ASK_TIMEOUT")):
            assert readiness["timeoutSeconds"] > seconds((ROOT / source).read_text(), name), source


def test_a_stop_has_time_for_all_of_its_stages(build):
    replicas = (ROOT / "chassis/rpc/src/peer/replicas.rs").read_text()
    rounds = int(re.search(r"LOOKUP_EVERY: u64 = (\d+);", replicas)[1])
    looks_up_every = rounds * seconds(replicas, "HEALTH_INTERVAL")
    for program in PROGRAMS:
        template, container = build.pod("Deployment", program)
        environment = build.environment("Deployment", program)
        pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
        stages = pause + int(environment["DRAIN_MS"]) / 1000 + int(environment["GRACE_MS"]) / 1000
        assert pause >= DNS_REMEMBERS + looks_up_every
        assert template["spec"]["terminationGracePeriodSeconds"] >= stages + TO_SPARE


def test_ports_are_the_ones_that_programs_listen_on(build):
    for program in PROGRAMS:
        _, container = build.pod("Deployment", program)
        environment = build.environment("Deployment", program)
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        listens = {"operators": environment["METRICS_LISTEN"]}
        if program == "gateway":
            listens |= {"http": environment["LISTEN"], "grpc": environment["MESH_LISTEN"]}
        else:
            listens["grpc"] = environment["LISTEN"]
        if "MAIL_LISTEN" in environment:
            listens["mail"] = environment["MAIL_LISTEN"]
        assert {name: f"0.0.0.0:{port}" for name, port in ports.items()} == listens
        service = build.get("Service", program)["spec"]
        for port in service["ports"]:
            assert port["targetPort"] == port["name"] and port["name"] in ports
        grpc = next(port for port in service["ports"] if port["name"] == "grpc")
        assert grpc["port"] == ports["grpc"], "callers look the pods' addresses up, and keep the port"
        assert grpc["appProtocol"] == ("https" if environment["MESH_SCHEME"] == "https" else "kubernetes.io/h2c")


def test_services_are_headless_and_choose_serving_pods_only(build):
    for program in PROGRAMS:
        service = build.get("Service", program)["spec"]
        assert (service.get("clusterIP") == "None") == (program in SERVICES)
        labels = build.pod("Deployment", program)[0]["metadata"]["labels"]
        assert service["selector"].items() <= labels.items()
        for kind, name in (("Job", migration(program)), ("CronJob", compaction(program))):
            other = build.pod(kind, name)[0]["metadata"]["labels"]
            assert not service["selector"].items() <= other.items()


def test_the_log_is_compacted_every_night(build):
    for program in PROGRAMS:
        spec = build.get("CronJob", compaction(program))["spec"]
        assert (spec["schedule"], spec["concurrencyPolicy"]) == ("30 2 * * *", "Forbid")
        assert int(build.environment("CronJob", compaction(program))["AUDIT_DAYS"]) > 0


def test_replicas_are_spread_and_replaced_without_a_gap(build):
    for program in PROGRAMS:
        deployment = build.get("Deployment", program)["spec"]
        assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
        keys = {constraint["topologyKey"] for constraint in deployment["template"]["spec"]["topologySpreadConstraints"]}
        assert keys == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}


def mounted(template):
    (volume,) = [volume for volume in template["spec"]["volumes"] if volume["name"] == "secrets"]
    return [source["secret"]["name"] for source in volume["projected"]["sources"] if "secret" in source]


def test_a_pod_has_its_own_secrets_and_those_of_nobody_else(build):
    for program in PROGRAMS:
        template, container = build.pod("Deployment", program)
        shared = ["mesh"] if program == "gateway" else ["mesh", "outside"]
        assert mounted(template) == [program, f"{program}-tls", *shared]
        for kind, name in (("Job", migration(program)), ("CronJob", compaction(program))):
            template, _ = build.pod(kind, name)
            assert mounted(template) == [migration(program)]
    for name, _, container in build.pods():
        mount = next(mount for mount in container["volumeMounts"] if mount["name"] == "secrets")
        assert mount["mountPath"] + "/" == SECRETS and mount["readOnly"], name
        assert "secretKeyRef" not in str(container.get("env")), name
        assert "secretRef" not in str(container.get("envFrom")), name


def test_production_has_a_budget_and_an_autoscaler_for_every_program(builds):
    production = builds["production"]
    for program in PROGRAMS:
        budget = production.get("PodDisruptionBudget", program)["spec"]
        labels = production.pod("Deployment", program)[0]["metadata"]["labels"]
        assert budget["selector"]["matchLabels"].items() <= labels.items() and budget["maxUnavailable"] == 1
        scaler = production.get("HorizontalPodAutoscaler", program)["spec"]
        assert scaler["scaleTargetRef"]["name"] == program and 2 <= scaler["minReplicas"] < scaler["maxReplicas"]
        assert "replicas" not in production.get("Deployment", program)["spec"], "it would undo the autoscaler's work"


def test_with_tls_every_program_has_a_certificate_for_the_name_it_is_called_by(real):
    for program in PROGRAMS:
        certificate = real.get("Certificate", program)["spec"]
        # By internal teams it is called with its namespace.
        namespace = real.get("Service", program)["metadata"]["namespace"]
        full = [f"{program}.{namespace}.svc", f"{program}.{namespace}.svc.cluster.local"]
        assert certificate["secretName"] == f"{program}-tls" and certificate["dnsNames"] == [program, *full]
        assert set(certificate["usages"]) >= {"server auth", "client auth"}
        environment = real.environment("Deployment", program)
        files = [environment[name] for name in ("TLS_CERT", "TLS_KEY", "TLS_CA", "TLS_TEAM_CA")]
        assert files == [SECRETS + name for name in ("tls.crt", "tls.key", "ca.crt", "team-ca.crt")]
        assert {scheme for *_, scheme, _ in real.calls(program)} <= {"https"}
        template, _ = real.pod("Deployment", program)
        sources = template["spec"]["volumes"][0]["projected"]["sources"]
        assert not sources[1]["secret"]["optional"]
        assert {"configMap": {"name": "team-authorities", "optional": True}} in sources, "without teams it starts too"


def test_the_way_in_leads_to_the_gateway(real):
    assert not real.all("Ingress"), "the Gateway API is the way in that is kept up; ingress is for those who have one"
    route = real.get("HTTPRoute", "gateway")["spec"]
    ((backend,),) = [rule["backendRefs"] for rule in route["rules"]]
    ports = {port["name"]: port["port"] for port in real.get("Service", "gateway")["spec"]["ports"]}
    assert backend == {"name": "gateway", "port": ports["http"]}
    assert real.environment("Deployment", "gateway")["TRUST_FORWARDED"] == "true"
    public = real.environment("Deployment", "svc-billing")["PUBLIC_URL"]
    assert route["hostnames"] == [public.removeprefix("https://")]


def test_keys_are_new_with_every_certificate_but_that_of_the_authority(real):
    for certificate in real.all("Certificate"):
        # What the authority has signed is worth as much as its key: a new one would end that all at once.
        wanted = "Never" if certificate["spec"].get("isCA") else "Always"
        assert certificate["spec"]["privateKey"]["rotationPolicy"] == wanted, certificate["metadata"]["name"]


def millicores(text):
    return int(text.removesuffix("m")) if text.endswith("m") else 1000 * int(text)


def mebibytes(text):
    assert text.endswith("Mi")
    return int(text.removesuffix("Mi"))


def test_the_autoscaler_measures_by_what_a_replica_uses_under_load(builds):
    production = builds["production"]
    for program in PROGRAMS:
        (metric,) = production.get("HorizontalPodAutoscaler", program)["spec"]["metrics"]
        assert metric["resource"] == {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
        _, container = production.pod("Deployment", program)
        assert millicores(container["resources"]["requests"]["cpu"]) >= 250, program


def test_memory_has_room_above_what_attacks_leave_in_use(build):
    table = re.search(r"<!-- faults -->(.*?)<!-- /faults -->", (ROOT / "docs/measuring.md").read_text(), re.DOTALL)[1]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "| ok" in
            re.sub(r"\s+", " ", line)]
    assert {row[0] for row in rows} == {program.removeprefix("svc-") for program in PROGRAMS}
    for name, *figures, limit, _ in rows:
        program = name if name == "gateway" else f"svc-{name}"
        _, container = build.pod("Deployment", program)
        mine = mebibytes(container["resources"]["limits"]["memory"])
        assert mine == int(limit), f"{program}: docs/measuring.md says {limit}"
        assert mine >= 1.5 * max(map(int, figures)), program
        assert mebibytes(container["resources"]["requests"]["memory"]) >= int(figures[0]), program
