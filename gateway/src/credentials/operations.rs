//! What issuing and revoking a credential does, and exchanging one for a context token.

use chassis_base::time::timestamp;
use chassis_base::{Account, Error};
use chassis_data::Tx;
use chassis_rpc::token::LIFETIME_SECONDS;
use chrono::{DateTime, TimeDelta, Utc};
use proto::At;
use proto::accounts::{
    CreateTokenRequest, CreateTokenResponse, Credential, IssueCredentialRequest, IssueCredentialResponse,
    RevokeCredentialRequest, RevokeCredentialResponse,
};
use proto::api::{Fault, Problem};
use sqlx::PgConnection;
use subtle::ConstantTimeEq;

use super::{Record, credential_message, rules, store};
use crate::accounts;
use crate::keys::rules::{expiry, has_ended};
use crate::keys::{NewKey, PresentedKey, public_id_of};
use crate::runtime::Runtime;

/// The answer is the only place where the whole credential ever appears: the table has a hash of its secret.
pub(super) async fn issue(
    tx: &mut Tx<'_>,
    input: &IssueCredentialRequest,
) -> Result<IssueCredentialResponse, Error> {
    let scopes = rules::credential_scopes(input, &mut tx.faults);
    let now = tx.now();
    let expires_at = expiry(input.expires_at.as_ref(), now, &mut tx.faults);
    tx.valid()?;
    let mut accounts = Vec::new();
    for account in &input.accounts {
        accounts.push(accounts::operations::get(tx.db(), account).await?.account_id);
    }
    accounts.sort_unstable();
    accounts.dedup();
    let new = NewKey::credential();
    let record = |account_id| Record {
        account_id,
        public_id: new.public_id.clone(),
        team: input.team.clone(),
        secret_hash: new.secret_hash.to_vec(),
        scopes: scopes.clone(),
        created_at: now,
        expires_at,
        last_used_at: None,
        revoked_at: None,
    };
    let records: Vec<Record> = accounts.into_iter().map(record).collect();
    for record in &records {
        store::insert(tx.db(), record).await?;
    }
    Ok(IssueCredentialResponse { secret: new.text, credential: audited(tx, &records) })
}

/// Ends a credential for all its accounts. A token that it was exchanged for is valid until it expires.
pub(super) async fn revoke(
    tx: &mut Tx<'_>,
    input: &RevokeCredentialRequest,
) -> Result<RevokeCredentialResponse, Error> {
    let Some(public_id) = public_id_of(&input.credential) else {
        let detail = "credential must be a whole credential or its public id; check it for typing mistakes";
        tx.faults.add(&At::ROOT.name("credential"), Fault::BadFormat, detail);
        return Err(std::mem::take(&mut tx.faults).into());
    };
    let now = tx.now();
    let mut records = store::revoke(tx.db(), public_id, now).await?;
    records.sort_unstable_by_key(|record| record.account_id);
    let credential = audited(tx, &records).ok_or_else(|| {
        Error::problem(Problem::NotFound, format!("There is no credential with the public id `{public_id}`."))
    })?;
    Ok(RevokeCredentialResponse { credential: Some(credential) })
}

/// Exchanges a credential for a context token, as the gateway does with a key for every request.
pub(super) async fn create_token(
    runtime: &Runtime,
    input: CreateTokenRequest,
) -> Result<CreateTokenResponse, Error> {
    let now = runtime.clock.now();
    let Accepted { record, account } = accept(runtime, &input, now).await?;
    let scopes = rules::token_scopes(&record.scopes, input.scopes)?;
    let minter = runtime.tokens.to(&input.audience);
    let token = minter.mint(&account, &record.public_id, &record.team, &scopes, now);
    tracing::info!(
        credential = record.public_id,
        team = record.team,
        account = %account.id,
        "context token created"
    );
    Ok(CreateTokenResponse {
        token,
        expires_at: Some(timestamp(now + TimeDelta::seconds(LIFETIME_SECONDS))),
        account_id: account.id.to_string(),
        scopes,
    })
}

/// A valid credential and the account that it is used for.
struct Accepted {
    record: Record,
    account: Account,
}

/// Checks a credential for an account. The error does not reveal which of the two is wrong.
async fn accept(
    runtime: &Runtime,
    input: &CreateTokenRequest,
    now: DateTime<Utc>,
) -> Result<Accepted, Error> {
    let presented = PresentedKey::parse_credential(&input.credential).ok_or_else(refused)?;
    let accepting = async |connection: &mut PgConnection| {
        let account = accounts::store::find(connection, &input.account).await?.ok_or_else(refused)?;
        let record = store::find(connection, account.account_id, presented.public_id).await?;
        let record = record.ok_or_else(refused)?;
        let same = record.secret_hash.ct_eq(&presented.secret_hash());
        if !bool::from(same) || has_ended(record.revoked_at, record.expires_at, now) {
            return Err(refused());
        }
        store::record_use(connection, &record, now).await?;
        Ok(Accepted { record, account: account.account()? })
    };
    runtime.db.read(accepting).await
}

fn refused() -> Error {
    let detail = "The credential is not valid, or not for this account. Ask the operator of this installation: \
                  gateway credential list";
    Error::problem(Problem::Unauthenticated, detail.to_owned())
}

/// Writes the audit entry of a credential that was issued or revoked, and returns its message. The entry names all its
/// accounts, and belongs to the log of the first.
fn audited(tx: &mut Tx<'_>, records: &[Record]) -> Option<Credential> {
    let credential = credential_message(records)?;
    tx.file_under(records.first()?.account_id);
    tx.changed("credential", &credential.public_id, &credential);
    Some(credential)
}
