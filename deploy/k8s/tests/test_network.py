"""The network lets through exactly the calls that the settings name. The policies are judged here as a cluster judges
them: a pod that any policy selects for a direction may do only what some policy allows."""

import ipaddress

from conftest import PROGRAMS, SERVICES, compose, migration

GRPC, HTTP, OPERATORS, MAIL = 7701, 7700, 7711, 7708
PORTS = (HTTP, GRPC, OPERATORS, MAIL)
PRIVATE = [
    "10.0.0.1", "10.255.255.255", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.16.0.1", "172.31.255.255",
    "192.168.1.1", "0.0.0.0", "::1", "fd00::1", "fe80::1",
]
PUBLIC = ["93.184.215.14", "2606:4700::1111"]


def matches(selector, labels):
    assert set(selector) <= {"matchLabels"}, "the judge knows matchLabels only"
    return selector.get("matchLabels", {}).items() <= labels.items()


def covers(block, address):
    address = ipaddress.ip_address(address)
    inside = lambda network: address in ipaddress.ip_network(network)
    return inside(block["cidr"]) and not any(inside(network) for network in block.get("except", []))


def is_peer(peer, other):
    """`other`: labels of a pod here, {"namespace": labels, "pod": labels} elsewhere, or an address outside."""
    if "ipBlock" in peer:
        return isinstance(other, str) and covers(peer["ipBlock"], other)
    if isinstance(other, str):
        return False
    if "namespaceSelector" in peer:
        namespace = other.get("namespace")
        return namespace is not None and matches(peer["namespaceSelector"], namespace) and (
            "podSelector" not in peer or matches(peer["podSelector"], other["pod"]))
    return "namespace" not in other and matches(peer["podSelector"], other)


def allows(build, direction, pod, other, port, protocol="TCP"):
    rules, peers = ("egress", "to") if direction == "Egress" else ("ingress", "from")
    selecting = [
        policy["spec"] for policy in build.all("NetworkPolicy")
        if matches(policy["spec"]["podSelector"], pod) and direction in policy["spec"]["policyTypes"]
    ]
    if not selecting:
        return True
    for policy in selecting:
        for rule in policy.get(rules, []):
            ports = rule.get("ports")
            at_port = ports is None or any(
                entry.get("port", port) == port and entry.get("protocol", "TCP") == protocol for entry in ports)
            if at_port and (peers not in rule or any(is_peer(peer, other) for peer in rule[peers])):
                return True
    return False


def labels(build, kind, name):
    return build.pod(kind, name)[0]["metadata"]["labels"]


def all_pods(build):
    pods = {program: labels(build, "Deployment", program) for program in PROGRAMS}
    return pods | {migration(program): labels(build, "Job", migration(program)) for program in PROGRAMS}


def test_exactly_the_calls_of_the_settings_are_let_through(real):
    pods = all_pods(real)
    called = {(program, host, port) for program in PROGRAMS for _, host, port, *_ in real.calls(program)}
    let_through = {
        (caller, callee, port)
        for caller, out in pods.items() for callee, into in pods.items() for port in PORTS
        if allows(real, "Egress", out, into, port) and allows(real, "Ingress", into, out, port)
    }
    assert let_through == called


def test_certificates_let_through_exactly_the_calls_of_the_settings_and_internal_teams(real):
    for program in PROGRAMS:
        callers = {
            real.get("Certificate", caller)["spec"]["dnsNames"][0] for caller in PROGRAMS
            if any(host == program for _, host, *_ in real.calls(caller))
        }
        named = real.environment("Deployment", program)["TLS_CALLERS"].split(",")
        assert sorted(named) == sorted(callers | {"team-*"}), program


def test_both_ends_of_a_call_agree(real):
    """A way out that leads nowhere, or a way in for nobody, is a mistake too."""
    pods = all_pods(real)
    for caller, from_labels in pods.items():
        for callee, to_labels in pods.items():
            for port in PORTS:
                out = allows(real, "Egress", from_labels, to_labels, port)
                into = allows(real, "Ingress", to_labels, from_labels, port)
                assert out == into, f"{caller} → {callee}:{port}"


def test_a_label_stands_for_a_call_or_a_known_place(build):
    places = {"database", "mail", "internet"}
    for program in PROGRAMS:
        names = [label for label in labels(build, "Deployment", program) if label.startswith("reaches.")]
        reaches = {name.removeprefix("reaches.") for name in names}
        assert reaches - places == {service for service, *_ in build.calls(program)}, program


def test_a_pod_that_nobody_thought_of_reaches_nothing_but_names(real):
    policy = real.get("NetworkPolicy", "default-deny")["spec"]
    assert policy == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    stranger = {"app": "stranger"}
    dns = {"namespace": {"kubernetes.io/metadata.name": "kube-system"}, "pod": {"k8s-app": "kube-dns"}}
    # The cluster's DNS, and the cache of it that a node may have (NodeLocal DNSCache).
    for names in (dns, "169.254.20.10"):
        assert allows(real, "Egress", stranger, names, 53, "UDP") and allows(real, "Egress", stranger, names, 53)
        assert not allows(real, "Egress", stranger, names, 80)
    assert not allows(real, "Egress", stranger, "169.254.20.11", 53, "UDP")
    for other in [*PRIVATE, *PUBLIC, *all_pods(real).values()]:
        for port in (53, 80, 443, 5432, *PORTS):
            assert not allows(real, "Egress", stranger, other, port)
            assert not allows(real, "Ingress", stranger, other, port)


def database(build):
    network = build.get("NetworkPolicy", "reach-database")["spec"]["egress"][0]["to"][0]["ipBlock"]["cidr"]
    return str(ipaddress.ip_network(network)[0])


def test_every_program_reaches_its_database(real):
    assert database(real) != "192.0.2.1", "the overlay has to say where the database is"
    for name, pod in all_pods(real).items():
        assert allows(real, "Egress", pod, database(real), 5432), name
        assert not allows(real, "Egress", pod, database(real), 22), name


def test_only_public_addresses_are_reached_outside_and_only_by_those_who_need_them(real):
    internet = {"svc-billing", "svc-support", "svc-work", "svc-automation"}
    for name, pod in all_pods(real).items():
        for address in PUBLIC:
            assert allows(real, "Egress", pod, address, 443) == (name in internet), name
            assert allows(real, "Egress", pod, address, 587) == (name in SERVICES), name
            assert not allows(real, "Egress", pod, address, 80), name
        for address in PRIVATE:
            for port in (80, 443, 465, 587, 5432):
                assert not allows(real, "Egress", pod, address, port), f"{name} → {address}:{port}"


def test_from_outside_only_the_gateway_is_reached(real):
    came_by = {"namespace": {"kubernetes.io/metadata.name": "gateways"}, "pod": {}}
    stranger = {"namespace": {"kubernetes.io/metadata.name": "default"}, "pod": {}}
    for name, pod in all_pods(real).items():
        for port in PORTS:
            assert allows(real, "Ingress", pod, came_by, port) == ((name, port) == ("gateway", HTTP)), name
            for other in (stranger, "93.184.215.14", "10.0.0.7"):
                assert not allows(real, "Ingress", pod, other, port), name


def test_prometheus_and_internal_teams_reach_their_ports_only(real):
    prometheus = {"namespace": {"kubernetes.io/metadata.name": "monitoring"}, "pod": {}}
    team = {"namespace": {"administration-team": "true"}, "pod": {}}
    for name, pod in all_pods(real).items():
        for port in PORTS:
            serves = name in PROGRAMS
            assert allows(real, "Ingress", pod, prometheus, port) == (serves and port == OPERATORS), name
            assert allows(real, "Ingress", pod, team, port) == (serves and port == GRPC), name


def test_only_the_mail_server_hands_mail_over(real):
    server = {"namespace": {"administration-mail": "true"}, "pod": {}}
    for name, pod in all_pods(real).items():
        for port in PORTS:
            assert allows(real, "Ingress", pod, server, port) == ((name, port) == ("svc-support", MAIL)), name


def test_the_component_ingress_lets_its_controller_in_instead(tmp_path):
    build = compose(tmp_path / "ingress", "elsewhere", "network-policies", "ingress")
    (rule,) = build.get("Ingress", "gateway")["spec"]["rules"]
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {"name": "gateway", "port": {"name": "http"}}
    assert build.environment("Deployment", "gateway")["TRUST_FORWARDED"] == "true"
    assert build.get("Ingress", "gateway")["spec"]["ingressClassName"] != "nginx", "ingress-nginx is retired"
    for name, pod in all_pods(build).items():
        for namespace, expected in (("traefik", (name == "gateway")), ("gateways", False)):
            came_by = {"namespace": {"kubernetes.io/metadata.name": namespace}, "pod": {}}
            assert allows(build, "Ingress", pod, came_by, HTTP) == expected, name
