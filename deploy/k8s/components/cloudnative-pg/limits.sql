-- What a program asks for when it connects, as settings of its role: a pooler in transaction mode does not hand it on.
--
--   psql -d administration -v ON_ERROR_STOP=1 -f deploy/k8s/components/cloudnative-pg/limits.sql
--
-- After roles.sql, and again with it; repeating it changes nothing. `gateway doctor` complains where it is missing.
do $$
declare
    area text;
    serving text;
begin
    foreach area in array array['gateway', 'relations', 'billing', 'crm', 'support', 'work', 'automation'] loop
        serving := case area when 'gateway' then area else 'svc_' || area end;
        execute format('alter role %I set search_path = %I, public', serving, area);
        execute format('alter role %I set statement_timeout = %L', serving, '10s');
        execute format('alter role %I set lock_timeout = %L', serving, '5s');
        execute format('alter role %I set idle_in_transaction_session_timeout = %L', serving, '15s');
        execute format('alter role %I set client_connection_check_interval = %L', serving, '1s');
    end loop;
end
$$;
