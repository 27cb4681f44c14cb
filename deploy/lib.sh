# shellcheck shell=bash
# What the scripts of this folder share: messages, waiting, ports, processes, locks and packages.
# It is sourced, never run, works with the bash 3.2 of macOS, and needs no tool beyond a POSIX system
# (no curl, no jq, no ps).

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)"

# The services in the order of their ports; the gateway comes before them.
# shellcheck disable=SC2034 # used by the scripts that source this
SERVICES="relations billing crm support work automation"

say() { printf '%s\n' "$*" >&2; }
die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" = 0 ]; }

# usage FILE: the comment block at the top of a script is its --help.
usage() { awk 'NR == 1 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$1"; }

# random_word BYTES: hexadecimal, so that it needs no quoting anywhere.
random_word() { od -An -N "$1" -tx1 /dev/urandom | tr -d ' \n'; }

upper() { printf '%s' "$1" | tr '[:lower:]-' '[:upper:]_'; }

# private_file FILE: takes the content from stdin; nobody but us may read it, not even for a moment.
private_file() {
    (umask 077 && cat >"$1.new") && mv "$1.new" "$1"
}

# --- ports --------------------------------------------------------------------------------------------------------

port_busy() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# range_free BASE COUNT: nobody listens on any port of the range.
range_free() {
    local port
    for ((port = $1; port < $1 + $2; port++)); do
        if port_busy "$port"; then return 1; fi
    done
}

# free_ports COUNT: the first port of a range in which all are free. Below 32768, where the kernel takes the local
# ports of outgoing connections from, so that none of them gets in between.
free_ports() {
    local try base
    for ((try = 0; try < 50; try++)); do
        base=$((10000 + (RANDOM * 32768 + RANDOM) % 22000))
        if range_free "$base" "$1"; then
            printf '%s\n' "$base"
            return 0
        fi
    done
    die "found no $1 free ports in a row"
}

# http_status PORT PATH [HEADER]: the status of a GET on 127.0.0.1, or 000.
http_status() (
    exec 2>/dev/null
    exec 3<>"/dev/tcp/127.0.0.1/$1" || { echo 000; exit 0; }
    printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n%s\r\n' "$2" "$1" "${3:+$3$'\r\n'}" >&3
    status=000
    IFS=' ' read -r -t 5 _ status _ <&3 || true
    echo "${status:-000}"
)

# --- waiting and processes ----------------------------------------------------------------------------------------

# wait_until SECONDS COMMAND…: true as soon as the command is, false when the time is over.
wait_until() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$end" ]; then return 1; fi
        sleep 0.2
    done
}

# alive PID: it runs. A zombie does not, and in a container it may stay one for ever.
alive() {
    kill -0 "$1" 2>/dev/null || return 1
    if [ -r "/proc/$1/stat" ]; then
        local line
        read -r line <"/proc/$1/stat" 2>/dev/null || return 1
        line="${line##*) }"
        [ "${line%% *}" != Z ]
    fi
}

gone() { ! alive "$1"; }

# runs_as PID NAME: the process is still the one that we started, and not a later one with its number.
runs_as() {
    alive "$1" || return 1
    if [ -r "/proc/$1/cmdline" ]; then
        tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -q -- "$2"
    elif have ps; then
        ps -o args= -p "$1" | grep -q -- "$2"
    fi
}

# stop_process PID SECONDS: asks, waits, insists.
stop_process() {
    kill -TERM "$1" 2>/dev/null || return 0
    if ! wait_until "$2" gone "$1"; then
        kill -KILL "$1" 2>/dev/null || true
        wait_until 5 gone "$1" || true
    fi
}

# server_user: who runs PostgreSQL and PgBouncer when we are root, which both refuse to be.
server_user() { if id postgres >/dev/null 2>&1; then echo postgres; else echo nobody; fi; }

# with_lock FILE COMMAND…: one at a time, across processes. The lock ends with its holder.
with_lock() {
    local file="$1" status=0
    shift
    mkdir -p "$(dirname "$file")"
    if have flock; then
        # The descriptor must not reach a server that outlives this script: it would hold the lock.
        exec 9>>"$file"
        flock -w 300 9 || die "waited 300 s for the lock $file"
        "$@" 9>&- || status=$?
        exec 9>&-
    else
        wait_until 300 mkdir_lock "$file.d" || die "waited 300 s for the lock $file.d"
        "$@" || status=$?
        rm -rf "$file.d"
    fi
    return "$status"
}

# Where flock is missing (macOS): a folder with the holder's number; a dead holder's lock is taken over.
mkdir_lock() {
    if mkdir "$1" 2>/dev/null; then
        echo $$ >"$1/pid"
        return 0
    fi
    local holder
    holder="$(cat "$1/pid" 2>/dev/null)" || return 1
    if [ -n "$holder" ] && gone "$holder"; then rm -rf "$1"; fi
    return 1
}

# --- packages -----------------------------------------------------------------------------------------------------

# may_install WHAT: true when packages can be installed here: as root, or with sudo after asking a person.
may_install() {
    if is_root; then return 0; fi
    if ! have sudo || ! [ -t 0 ]; then return 1; fi
    local answer
    read -r -p "$1 is missing. Install it with sudo apt-get? [y/N] " answer
    [ "$answer" = y ] || [ "$answer" = Y ]
}

# apt_install PACKAGE…
apt_install() {
    local run=()
    is_root || run=(sudo)
    say "Installing $* (apt-get)"
    ${run[@]+"${run[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" \
        >/dev/null 2>&1 ||
        { ${run[@]+"${run[@]}"} apt-get update -q >/dev/null &&
            ${run[@]+"${run[@]}"} env DEBIAN_FRONTEND=noninteractive \
                apt-get install -y -q --no-install-recommends "$@" >/dev/null; }
}

# install_tool COMMAND PACKAGE: makes sure that a command is there; false when it cannot be installed here.
install_tool() {
    have "$1" && return 0
    if have apt-get && may_install "$1"; then
        apt_install "$2"
    elif have brew; then
        say "Installing $2 (brew)"
        brew install -q "$2" >/dev/null
    fi
    have "$1"
}

# --- cargo --------------------------------------------------------------------------------------------------------

need_cargo() {
    if ! have cargo && [ -x "$HOME/.cargo/bin/cargo" ]; then PATH="$HOME/.cargo/bin:$PATH"; fi
    have cargo || die "cargo is missing: install Rust with rustup, then start again"
    have cc || install_tool cc gcc || die "a C linker (cc) is missing, and Rust needs one: install gcc or clang"
}

target_dir() {
    (cd "$ROOT" && cargo metadata --format-version 1 --no-deps) |
        sed -n 's/.*"target_directory":"\([^"]*\)".*/\1/p'
}

# profile_dir PROFILE: cargo's folder for a profile.
profile_dir() { if [ "$1" = dev ]; then echo debug; else echo "$1"; fi; }

# --- python tools -------------------------------------------------------------------------------------------------

# python_tools: the programs of requirements.txt in .local/venv/bin; false when they cannot be had here.
python_tools() { with_lock "$ROOT/.local/venv.lock" make_venv "$ROOT/.local/venv" "$ROOT/deploy/requirements.txt"; }

# make_venv FOLDER REQUIREMENTS
make_venv() {
    local venv="$1" requirements="$2" wanted
    wanted="$(cksum <"$requirements")"
    if [ "$(cat "$venv/made" 2>/dev/null)" = "$wanted" ]; then return 0; fi
    install_tool python3 python3 || return 1
    say "Installing the tools of ${requirements#"$ROOT/"} into ${venv#"$ROOT/"}"
    rm -rf "$venv"
    if ! python3 -m venv "$venv" >/dev/null 2>&1; then
        # Debian keeps this part of Python in a package of its own.
        if have apt-get && may_install python3-venv; then apt_install python3-venv; fi
        rm -rf "$venv"
        python3 -m venv "$venv" >&2 || return 1
    fi
    "$venv/bin/pip" install -q --disable-pip-version-check -r "$requirements" >&2 || return 1
    printf '%s\n' "$wanted" >"$venv/made"
}
