//! The secrets that sign the requests of `http` steps, one for each account.

use chassis_base::time::timestamp;
use chassis_data::Tx;
use chassis_work::worker::Job;
use chrono::{DateTime, Utc};
use proto::automation::GetSigningSecretResponse;

use crate::egress::Secret;
use crate::error::Error;
use crate::webhook::rules::SECRET_OVERLAP;
use crate::webhook::{SigningSecrets, store};

/// The name of the secrets in the log, which gets their times only.
const AUDITED: &str = "signing_secret";

/// The secrets that sign requests now; made when they are needed for the first time.
pub(crate) async fn signing_secrets(job: &Job) -> Result<Vec<Secret>, chassis_base::Error> {
    let (account, now) = (job.account_id(), job.now());
    let found = job.db().read(async |connection| store::find_signing(connection, account).await).await?;
    let secrets = match found {
        Some(secrets) => secrets,
        None => job.write(&(), ensure).await?,
    };
    Ok(secrets.in_use(now))
}

/// The account's secrets, made if there are none. Two processes may both try: the insert of the second does nothing, and
/// both read the secret of the first.
pub(in crate::webhook) async fn ensure(tx: &mut Tx<'_>, (): &()) -> Result<SigningSecrets, Error> {
    let account = tx.account();
    if store::insert_signing(tx.db(), account, &Secret::random()).await? {
        tx.changed(AUDITED, account, &GetSigningSecretResponse::default());
    }
    let found = store::find_signing(tx.db(), account).await?;
    found.ok_or_else(|| Error::internal("a signing secret was not stored"))
}

/// A new secret.
pub(in crate::webhook) struct Rotated {
    pub secret: Secret,
    /// Until when the previous one signs beside it.
    pub old_secret_until: DateTime<Utc>,
}

pub(in crate::webhook) async fn rotate(tx: &mut Tx<'_>) -> Result<Rotated, Error> {
    let (account, until, secret) = (tx.account(), tx.now() + SECRET_OVERLAP, Secret::random());
    ensure(tx, &()).await?;
    store::rotate_signing(tx.db(), account, &secret, until).await?;
    let audited = GetSigningSecretResponse { old_secret_until: Some(timestamp(until)), ..Default::default() };
    tx.changed(AUDITED, account, &audited);
    Ok(Rotated { secret, old_secret_until: until })
}
