-- The roles of the mesh: for each program one that serves and one that migrates, with rights on its own schema alone.
--
--   psql -d administration -v ON_ERROR_STOP=1 -f deploy/k8s/roles.sql
--
-- To be run in the database of the mesh by a superuser, or by the administrator of a managed PostgreSQL, before the
-- first migration, and again when a program is added and after an upgrade; repeating it changes nothing. Passwords are
-- not set here.
--
--   svc_X        logs in to serve: reads and writes the rows of schema X; it can append to the log, but change
--                and remove nothing of it. No tables of its own, no other schema. It has the search path and the
--                settings that a program asks for when it connects: a pooler in transaction mode does not hand that on.
--   svc_X_owner  logs in to migrate: owns schema X and everything in it. Nothing else.

create extension if not exists pg_trgm schema public;
create extension if not exists btree_gin schema public;

do $$
declare
    area text;
    serving text;
    owning text;
    login text;
    kept text;
begin
    -- Nobody has anything by being somebody.
    execute format('revoke all on database %I from public', current_database());
    execute 'revoke all on schema public from public';

    foreach area in array array['gateway', 'relations', 'billing', 'crm', 'support', 'work', 'automation'] loop
        serving := case area when 'gateway' then area else 'svc_' || area end;
        owning := serving || '_owner';
        if not exists (select from pg_roles where rolname = serving) then
            execute format('create role %I login', serving);
        end if;
        if not exists (select from pg_roles where rolname = owning) then
            execute format('create role %I login', owning);
        end if;
        -- An administrator who is no superuser may give a schema only to a role of which he is a member.
        if not (select rolsuper from pg_roles where rolname = current_user) then
            execute format('grant %I to current_user', owning);
        end if;

        execute format('grant connect on database %I to %I, %I', current_database(), serving, owning);
        -- The operators of the extensions.
        execute format('grant usage on schema public to %I, %I', serving, owning);

        execute format('create schema if not exists %I authorization %I', area, owning);
        execute format('grant usage on schema %I to %I', area, serving);
        execute format('grant select, insert, update, delete on all tables in schema %I to %I', area, serving);
        execute format(
            'alter default privileges for role %I in schema %I grant select, insert, update, delete on tables to %I',
            owning, area, serving);
        -- The migrations that make the log take this away; the grant on all tables above has just given it back.
        foreach kept in array array['log', 'feed', 'audit'] loop
            if to_regclass(format('%I.%I', area, kept)) is not null then
                execute format('revoke update, delete on %I.%I from %I', area, kept, serving);
            end if;
        end loop;

        -- Those of the second login too, which rotate-database-role makes.
        for login in select rolname from pg_roles where rolname in (serving, serving || '_b') loop
            execute format('alter role %I set search_path = %I, public', login, area);
            execute format('alter role %I set statement_timeout = %L', login, '10s');
            execute format('alter role %I set lock_timeout = %L', login, '5s');
            execute format('alter role %I set idle_in_transaction_session_timeout = %L', login, '15s');
            execute format('alter role %I set client_connection_check_interval = %L', login, '1s');
            execute format('alter role %I set jit = %L', login, 'off');
        end loop;
    end loop;
end
$$;
