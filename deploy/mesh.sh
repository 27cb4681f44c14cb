# shellcheck shell=bash
# One copy of the mesh on this machine: its ports, its state folder, its processes. Sourced by up, down and those that
# use what is up. A process is called by its program (`billing`), further replicas by a number too (`billing-2`).
# shellcheck disable=SC2034 # the names below are for them
# shellcheck source=lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

PORT_BASE="${PORT_BASE:-7700}"
DEFAULT_PORT_BASE=7700
DATABASE=administration
# A superuser's address of a server that runs elsewhere; empty: the copy has one of its own.
SERVER_URL="${SERVER_URL:-}"
if [ -n "$SERVER_URL" ]; then DATABASE="administration_$PORT_BASE"; fi

case "$PORT_BASE" in
'' | *[!0-9]*) die "PORT_BASE must be a number, not $PORT_BASE" ;;
esac
if [ "$PORT_BASE" -lt 1024 ] || [ "$PORT_BASE" -gt 65500 ]; then die "PORT_BASE must be from 1024 to 65500"; fi

if [ "$PORT_BASE" = "$DEFAULT_PORT_BASE" ]; then
    STATE="$ROOT/.local"
else
    STATE="$ROOT/.local/up-$PORT_BASE"
fi

# Replicas beyond the first have their ports this much higher.
REPLICA_STEP=30
# How many of each program run; up --replicas sets it.
REPLICAS="${REPLICAS:-1}"

# program_of PROCESS: `billing` of `billing-2`.
program_of() { printf '%s' "${1%%-*}"; }

# replicas_of PROGRAM: the names of its processes.
replicas_of() {
    local number
    printf '%s' "$1"
    for ((number = 2; number <= REPLICAS; number++)); do printf ' %s-%s' "$1" "$number"; done
}

# processes: all of them, gateways first.
processes() {
    local name
    for name in gateway $SERVICES; do printf '%s ' "$(replicas_of "$name")"; done
}

# port_of PROCESS [OFFSET]: the gateway's is the base, the services follow in their order.
port_of() {
    local offset=0 name program number=1
    program="$(program_of "$1")"
    case "$1" in *-*) number="${1##*-}" ;; esac
    if [ "$program" != gateway ]; then
        for name in $SERVICES; do
            offset=$((offset + 1))
            if [ "$name" = "$program" ]; then break; fi
        done
    fi
    echo $((PORT_BASE + offset + ${2:-0} + (number - 1) * REPLICA_STEP))
}

metrics_port_of() { port_of "$1" 10; }
# mesh_port_of PROCESS: a gateway's own gRPC.
mesh_port_of() { port_of "$1" 7; }
MESH_PORT="$(mesh_port_of gateway)"
# mail_port_of PROCESS: where support, the fourth service, takes mail in.
mail_port_of() { port_of "$1" 4; }
POOLER_PORT=$((PORT_BASE + 19))
POSTGRES_PORT=$((PORT_BASE + 20))
# ports_used: how many in a row one copy needs.
ports_used() { echo $((21 + (REPLICAS - 1) * REPLICA_STEP)); }
# A little longer than the time in which a program finishes what is in progress (GRACE_MS).
STOP_WITHIN=20

binary_of() { if [ "$(program_of "$1")" = gateway ]; then echo gateway; else echo "svc-$(program_of "$1")"; fi; }
role_of() { if [ "$1" = gateway ]; then echo gateway; else echo "svc_$1"; fi; }

pid_of() { cat "$STATE/pids/$1" 2>/dev/null || true; }

# is_up PROCESS: our process of that name runs.
is_up() {
    local pid
    pid="$(pid_of "$1")"
    [ -n "$pid" ] && runs_as "$pid" "$(binary_of "$1")"
}

# stop_mesh: gateways first, so that nothing new comes in; then the services, all at once; then the pooler
# and the database.
stop_mesh() {
    stop_processes "$STATE"/pids/gateway*
    stop_processes "$STATE"/pids/*
    rm -rf "$STATE/pids"
    if [ -d "$STATE/pgbouncer" ]; then "$ROOT/deploy/pgbouncer" stop "$STATE/pgbouncer"; fi
    if [ -d "$STATE/postgres" ]; then "$ROOT/deploy/postgres" stop "$STATE/postgres"; fi
}

# stop_processes FILE…: those whose numbers are in the files, at the same time.
stop_processes() {
    local file name waiting=()
    for file in "$@"; do
        name="$(basename "$file")"
        if [ -f "$file" ] && is_up "$name"; then
            stop_process "$(pid_of "$name")" "$STOP_WITHIN" &
            waiting+=("$!")
        fi
    done
    for file in ${waiting[@]+"${waiting[@]}"}; do wait "$file" || true; done
}

# use_database_url URL: sets PLAIN_URL, which has no password; programs of PostgreSQL get that by environment, because a
# command line can be read by everyone on the machine.
use_database_url() {
    local rest="${1#*://}" user
    PLAIN_URL="$1"
    case "$rest" in *@*) user="${rest%%@*}" ;; *) user='' ;; esac
    case "$user" in
    *%*) ;;
    *:*)
        export PGPASSWORD="${user#*:}"
        PLAIN_URL="${1%%://*}://${user%%:*}@${rest#*@}"
        ;;
    esac
}

# server_url DATABASE: a superuser's address of a database of the copy.
server_url() {
    local rest="${SERVER_URL#*://}" options=''
    if [ -z "$SERVER_URL" ]; then
        "$ROOT/deploy/postgres" url "$STATE/postgres" "$1"
        return
    fi
    case "$rest" in *\?*) options="?${rest#*\?}" rest="${rest%%\?*}" ;; esac
    printf '%s://%s/%s%s\n' "${SERVER_URL%%://*}" "${rest%%/*}" "$1" "$options"
}

# psql_as_superuser -d DATABASE [ARGUMENT…]
psql_as_superuser() {
    if [ -z "$SERVER_URL" ]; then
        "$ROOT/deploy/postgres" psql "$STATE/postgres" "$@"
        return
    fi
    (
        use_database_url "$(server_url "$2")"
        "$("$ROOT/deploy/postgres" bin)/psql" "$PLAIN_URL" -X -q -v ON_ERROR_STOP=1 "${@:3}"
    )
}
