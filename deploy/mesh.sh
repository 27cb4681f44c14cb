# shellcheck shell=bash
# One copy of the mesh on this machine: its ports, its state folder, its processes. Sourced by up and down.
# shellcheck disable=SC2034 # the names below are for them
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PORT_BASE="${PORT_BASE:-7700}"
DEFAULT_PORT_BASE=7700
DATABASE=administration

case "$PORT_BASE" in
'' | *[!0-9]*) die "PORT_BASE must be a number, not $PORT_BASE" ;;
esac
if [ "$PORT_BASE" -lt 1024 ] || [ "$PORT_BASE" -gt 65500 ]; then die "PORT_BASE must be from 1024 to 65500"; fi

if [ "$PORT_BASE" = "$DEFAULT_PORT_BASE" ]; then
    STATE="$ROOT/.local"
else
    STATE="$ROOT/.local/up-$PORT_BASE"
fi

# port_of NAME [OFFSET]: the gateway's is the base, the services follow in their order.
port_of() {
    local offset=0 name
    if [ "$1" != gateway ]; then
        for name in $SERVICES; do
            offset=$((offset + 1))
            if [ "$name" = "$1" ]; then break; fi
        done
    fi
    echo $((PORT_BASE + offset + ${2:-0}))
}

metrics_port_of() { port_of "$1" 10; }
MESH_PORT=$((PORT_BASE + 7))
# Where support takes mail in.
MAIL_PORT=$((PORT_BASE + 8))
POSTGRES_PORT=$((PORT_BASE + 20))
PORTS_USED=21
# A little longer than the time in which a program finishes what is in progress (GRACE_MS).
STOP_WITHIN=20

binary_of() { if [ "$1" = gateway ]; then echo gateway; else echo "svc-$1"; fi; }
role_of() { if [ "$1" = gateway ]; then echo gateway; else echo "svc_$1"; fi; }

pid_of() { cat "$STATE/pids/$1" 2>/dev/null || true; }

# is_up NAME: our process of that name runs.
is_up() {
    local pid
    pid="$(pid_of "$1")"
    [ -n "$pid" ] && runs_as "$pid" "$(binary_of "$1")"
}

# stop_mesh: gateway first, so that nothing new comes in; then the services, all at once; then the database.
stop_mesh() {
    local name pid waiting=()
    for name in gateway $SERVICES; do
        pid="$(pid_of "$name")"
        if [ -n "$pid" ] && is_up "$name"; then
            if [ "$name" = gateway ]; then
                stop_process "$pid" "$STOP_WITHIN"
            else
                stop_process "$pid" "$STOP_WITHIN" &
                waiting+=("$!")
            fi
        fi
    done
    for pid in ${waiting[@]+"${waiting[@]}"}; do wait "$pid" || true; done
    rm -rf "$STATE/pids"
    if [ -d "$STATE/postgres" ]; then "$ROOT/deploy/postgres" stop "$STATE/postgres"; fi
}
