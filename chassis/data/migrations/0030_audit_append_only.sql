-- The log is written and read by those who serve; only the owner of the schema forgets old entries. Whoever else was
-- given more when the table was made, by the default privileges of the roles, loses it here.
do $$
declare
    other text;
begin
    for other in
        select distinct grantee from information_schema.role_table_grants
        where table_schema = current_schema() and table_name = 'audit' and grantee <> current_user
            and privilege_type in ('UPDATE', 'DELETE', 'TRUNCATE')
    loop
        execute format('revoke update, delete, truncate on audit from %I', other);
    end loop;
end
$$;
