//! What creating, narrowing and revoking a key does, and assigning a webhook endpoint to one.

use chassis_base::{AccountId, Error};
use chassis_data::Tx;
use proto::At;
use proto::accounts::{
    CreateKeyResponse, Key, NarrowKeyRequest, NarrowKeyResponse, RevokeKeyRequest, RevokeKeyResponse,
};
use proto::api::{Fault, Problem};

use super::rules::KeySettings;
use super::{NewKey, Record, automation, public_id_of, store};
use crate::runtime::Runtime;

/// The answer is the only place where the whole key ever appears: the table has a hash of its secret.
pub(crate) async fn create(
    tx: &mut Tx<'_>,
    account_id: AccountId,
    settings: KeySettings,
) -> Result<CreateKeyResponse, Error> {
    let (secret, record) = insert(tx, account_id, settings).await?;
    Ok(CreateKeyResponse { secret, key: Some(audited(tx, record)) })
}

/// Stores a new key; returns the whole of it beside its record.
pub(super) async fn insert(
    tx: &mut Tx<'_>,
    account_id: AccountId,
    settings: KeySettings,
) -> Result<(String, Record), Error> {
    let new = NewKey::generate();
    let record = Record {
        id: tx.id(),
        updated_at: tx.now(),
        account_id,
        public_id: new.public_id,
        name: settings.name,
        scopes: settings.scopes,
        strict: settings.strict,
        created_at: tx.now(),
        expires_at: settings.expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    store::insert(tx.db(), &record, &new.secret_hash).await?;
    Ok((new.text, record))
}

/// Removes scopes from a key. The worker sends the remaining scopes to automation afterwards; see `worker.rs`.
pub(crate) async fn narrow(tx: &mut Tx<'_>, input: &NarrowKeyRequest) -> Result<NarrowKeyResponse, Error> {
    let public_id = public_id(tx, &input.key)?;
    let now = tx.now();
    let record = store::narrow(tx.db(), public_id, &input.scopes, now).await?;
    let record = record.ok_or_else(|| not_found(public_id))?;
    Ok(NarrowKeyResponse { key: Some(audited(tx, record)) })
}

/// Revokes a key. Gateways refuse it once their cached copy is too old; see `authenticator.rs`.
pub(crate) async fn revoke(tx: &mut Tx<'_>, input: &RevokeKeyRequest) -> Result<RevokeKeyResponse, Error> {
    let public_id = public_id(tx, &input.key)?;
    let now = tx.now();
    let record = store::revoke(tx.db(), public_id, now).await?;
    let record = record.ok_or_else(|| not_found(public_id))?;
    Ok(RevokeKeyResponse { key: Some(audited(tx, record)) })
}

/// Assigns a webhook endpoint to a key: from then on it receives what that key may read.
pub(crate) async fn assign_endpoint(runtime: &Runtime, key: &str, endpoint: &str) -> Result<(), Error> {
    let public_id = public_id_of(key).unwrap_or(key);
    let found = runtime
        .db
        .read(async |connection| Ok::<_, Error>(store::find_with_account(connection, public_id).await?))
        .await?;
    let found = found.ok_or_else(|| not_found(public_id))?;
    automation::assign_endpoint(runtime, &found.account()?, found.key, endpoint).await
}

fn public_id<'a>(tx: &mut Tx<'_>, key: &'a str) -> Result<&'a str, Error> {
    public_id_of(key).ok_or_else(|| {
        let detail = "key must be a whole key or its public id; check it for typing mistakes";
        tx.faults.add(&At::ROOT.name("key"), Fault::BadFormat, detail);
        std::mem::take(&mut tx.faults).into()
    })
}

fn not_found(public_id: &str) -> Error {
    Error::problem(Problem::NotFound, format!("There is no key with the public id `{public_id}`."))
}

/// Writes the audit entry of a key that was created or changed, and returns its message. The entry belongs to the log of
/// the key's account: the call itself is on behalf of no account.
pub(super) fn audited(tx: &mut Tx<'_>, record: Record) -> Key {
    tx.file_under(record.account_id);
    let key = Key::from(record);
    tx.changed("key", &key.public_id, &key);
    key
}
