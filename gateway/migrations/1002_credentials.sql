-- Credentials of internal teams: one row for each account that a credential may act for, all with the same public id and
-- secret. A team names the account whenever it asks for a token, so the look-up begins with it.
create table credential (
    account_id uuid not null references account,
    public_id text not null,
    team text not null,
    -- SHA-256 of the secret; the secret itself is kept nowhere.
    secret_hash bytea not null,
    scopes text[] not null,
    created_at timestamptz not null,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    primary key (account_id, public_id)
);
