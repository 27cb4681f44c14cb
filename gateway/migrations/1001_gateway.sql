-- Accounts, their keys, and the exact limit. The accounts themselves are in the chassis' own table `account`: here it is
-- not what the service was told of but the list that the others are told from.

-- A name stands for the id on the command line, so it must mean one account. The list is small and stays in one place
-- when the other schemas are distributed.
create unique index account_name on account (lower(name));

create table api_key (
    account_id uuid not null references account,
    public_id text not null,
    name text not null,
    -- SHA-256 of the secret; the secret itself is kept nowhere.
    secret_hash bytea not null,
    scopes text[] not null,
    created_at timestamptz not null,
    expires_at timestamptz,
    last_used_at timestamptz,
    revoked_at timestamptz,
    primary key (account_id, public_id)
);

-- The one look-up that cannot begin with an account: a request brings nothing but its key, and the key says which
-- account it is for.
create unique index api_key_public_id on api_key (public_id);

-- When the last requests of a key under an exact rate were accepted. One row a key: its lock is what makes the limit
-- exact over all replicas.
create table exact_window (
    account_id uuid not null,
    public_id text not null,
    rate text not null,
    hits timestamptz[] not null,
    primary key (account_id, public_id, rate)
) with (fillfactor = 50);
