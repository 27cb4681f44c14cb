insert into gateway.api_key (account_id, public_id, name, secret_hash, scopes, created_at)
select account_id, 'idle' || i, 'idle', sha256('idle'), '{clients.read}', old from idle
on conflict do nothing;
