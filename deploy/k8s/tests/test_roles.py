"""roles.sql on a real PostgreSQL, with the real migrations: each program can do its work and nothing else.
TEST_DATABASE_URL is a superuser's address, PSQL the client."""

import os
import pathlib
import re
import subprocess
import urllib.parse
import uuid

import pytest
from conftest import K8S, PROGRAMS, ROOT, area

ROLES_SQL = K8S / "roles.sql"


def serving(program):
    return program.replace("-", "_")


def owning(program):
    return serving(program) + "_owner"


class Server:
    def __init__(self, url, database, prefix):
        self.url, self.database, self.prefix = urllib.parse.urlsplit(url), database, prefix

    def run(self, sql, database=None, role=None, files=()):
        """SQL, then files; as a role of ours by `set session authorization`, which gives up all other rights."""
        if role:
            sql = f"set session authorization {self.prefix}{role}; {sql}"
        arguments = [part for file in files for part in ("-f", str(file))]
        url = self.url._replace(path=f"/{database or self.database}").geturl()
        return subprocess.run(
            [os.environ.get("PSQL", "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql, *arguments],
            capture_output=True, text=True,
        )

    def does(self, sql, **options):
        done = self.run(sql, **options)
        assert done.returncode == 0, f"{sql}: {done.stderr}"
        return done.stdout.strip()

    def refuses(self, sql, **options):
        done = self.run(sql, **options)
        assert done.returncode != 0 and "permission denied" in done.stderr, f"{sql}: {done.stdout}{done.stderr}"


def migrations(program):
    own = sorted((ROOT / program / "migrations").glob("*.sql"))
    chassis = sorted((ROOT / "chassis/data/migrations").glob("*.sql"))
    assert chassis
    return [*chassis, *own]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A database of its own. Roles belong to the whole server, so they get a name of their own here too."""
    url, token = os.environ["TEST_DATABASE_URL"], uuid.uuid4().hex[:12]
    server = Server(url, f"roles_{token}", f"t{token}_")
    folder: pathlib.Path = tmp_path_factory.mktemp("roles")
    roles = folder / "roles.sql"
    text = ROLES_SQL.read_text()
    assert "serving := case area when 'gateway' then area else 'svc_' || area end;" in text
    roles.write_text(text.replace("serving := case", f"serving := '{server.prefix}' || case"))
    server.does(f"create database {server.database}", database="postgres")
    try:
        for _ in range(2):
            server.does("select 1", files=[roles])
        for program in PROGRAMS:
            server.does(f"set search_path = {area(program)}, public", role=owning(program), files=migrations(program))
        server.roles = roles
        yield server
    finally:
        server.does(f"drop database {server.database} with (force)", database="postgres")
        for program in PROGRAMS:
            for role in (serving(program), owning(program), serving(program) + "_b"):
                server.run(f"drop role if exists {server.prefix}{role}", database="postgres")


def tables(server, program):
    return server.does(
        f"select tablename from pg_tables where schemaname = '{area(program)}' order by 1").splitlines()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_works_with_the_rows_of_its_tables(server, program):
    names = tables(server, program)
    assert {"account", "log", "lease", "mail"} <= set(names)
    each = "select * from {0}.{1} limit 1; delete from {0}.{1} where false;"
    kept = {"log", "feed", "audit"}
    server.does("".join(each.format(area(program), name) for name in names if name not in kept), role=serving(program))
    server.does(
        f"insert into {area(program)}.replica (worker, owner, until) values ('w', gen_random_uuid(), now());"
        f"update {area(program)}.replica set until = now(); delete from {area(program)}.replica", role=serving(program))


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_log_can_be_added_to_and_read_and_only_its_owner_forgets(server, program):
    log, feed = f"{area(program)}.log", f"{area(program)}.feed"
    add = (
        f"insert into {log} (account_id, id, at, actor, request_id, method, kind, record_id, version, message)"
        " values (gen_random_uuid(), gen_random_uuid(), now(), '', '', '', '', '', 1, '');"
        f"insert into {feed} (account_id, position, id, hash) values (gen_random_uuid(), 1, gen_random_uuid(), '')")
    # As the migrations leave it, and after the roles were made once more.
    for files in ([], [server.roles]):
        server.does("select 1", files=files)
        server.does(f"{add}; select * from {log}, {feed}", role=serving(program))
        changes = [f"update {log} set actor = 'another'", f"update {feed} set hash = 'another'"]
        changes += [f"{verb} {table}" for verb in ("delete from", "truncate") for table in (log, feed)]
        for change in changes:
            server.refuses(change, role=serving(program))
    server.does(f"update {log} set image = null; delete from {log}; delete from {feed}", role=owning(program))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_cannot_change_its_schema(server, program):
    schema = area(program)
    server.refuses(f"create table {schema}.extra (x int)", role=serving(program))
    server.refuses(f"truncate {schema}.reader", role=serving(program))
    server.refuses("create schema extra", role=serving(program))
    server.refuses("create table public.extra (x int)", role=serving(program))
    server.refuses("create temporary table extra (x int)", role=serving(program))
    altered = server.run(f"alter table {schema}.reader add x int", role=serving(program))
    assert "must be owner" in altered.stderr


@pytest.mark.parametrize("program", PROGRAMS)
def test_neither_role_sees_another_schema(server, program):
    others = [area(other) for other in PROGRAMS if other != program]
    for role in (serving(program), owning(program)):
        server.refuses(f"select 1 from {others[0]}.log", role=role)
        server.refuses(f"create table {others[-1]}.extra (x int)", role=role)
        rights = server.does(
            f"select nspname from pg_namespace where nspname = any('{{{','.join(others)}}}') and"
            f" has_schema_privilege('{server.prefix}{role}', oid, 'usage, create')"
            " union all select schemaname || '.' || tablename from pg_tables"
            f" where schemaname = any('{{{','.join(others)}}}') and has_table_privilege("
            f"'{server.prefix}{role}', format('%I.%I', schemaname, tablename), 'select, insert, update, delete')")
        assert rights == "", f"{role}: {rights}"


def test_the_operators_of_the_extensions_are_within_reach(server):
    server.does("select public.similarity('a', 'b')", role="svc_relations")
    for role in ("svc_relations", "svc_relations_owner"):
        server.does("set search_path = relations, public; select 'abc' % 'abd'", role=role)


def test_strangers_may_not_even_connect(server):
    allowed = server.does("select has_database_privilege('public', current_database(), 'connect')")
    assert allowed == "f"
    for program in PROGRAMS:
        for role in (serving(program), owning(program)):
            attributes = server.does(
                "select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls from pg_roles"
                f" where rolname = '{server.prefix}{role}'")
            assert attributes == "f"
            assert server.does(
                f"select has_database_privilege('{server.prefix}{role}', current_database(), 'connect')") == "t"


def test_roles_have_by_themselves_what_programs_ask_for_when_they_connect(server):
    """A pooler in transaction mode does not hand that on."""
    settings = (ROOT / "chassis/data/src/session_settings.rs").read_text().split("#[cfg(test)]")[0]
    wanted = dict(re.findall(r'\("(\w+)", "(\w+)"\)', settings))
    assert {"statement_timeout", "jit"} <= wanted.keys()
    asked = " || ' ' || ".join(f"current_setting('{name}')" for name in (*wanted, "search_path"))
    second = f"{server.prefix}{serving('svc-billing')}_b"
    server.does(f"create role {second} login in role {server.prefix}{serving('svc-billing')}", files=[server.roles])
    logins = [(area(program), f"{server.prefix}{serving(program)}") for program in PROGRAMS] + [("billing", second)]
    for schema, login in logins:
        server.does(f"alter role {login} password 'x'")
        address = server.url._replace(
            netloc=f"{login}:x@{server.url.hostname}:{server.url.port}", path=f"/{server.database}").geturl()
        answer = subprocess.run(
            [os.environ.get("PSQL", "psql"), "-XqAt", "-d", address, "-c", f"select {asked}"],
            capture_output=True, text=True)
        assert answer.stdout.strip() == " ".join([*wanted.values(), f"{schema}, public"]), answer.stderr
    # Who migrates takes the time that it takes.
    owners = [f"{server.prefix}{owning(program)}" for program in PROGRAMS]
    assert server.does(f"select count(*) from pg_roles where rolname = any('{{{','.join(owners)}}}') and"
                       " rolconfig is not null") == "0"


def test_roles_are_those_that_secrets_are_made_for():
    areas = {area(program) for program in PROGRAMS}
    listed = ROLES_SQL.read_text().split("array[")[1].split("]")[0]
    assert {name.strip().strip("'") for name in listed.split(",")} == areas
