//! What changes of identities do. All of them happen under the lock on the account's settings.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use proto::At;
use proto::api::Fault;
use proto::billing::{Identity, IdentityInput};
use render::printed::Logo;

use super::{Record, default_of, logo, rules, store};
use crate::error::Error;
use crate::settings_base::SettingsLock;
use crate::settings_base::rules::ListLimit;

const AUDIT_KIND: &str = "identity";
const LIMIT: ListLimit = ListLimit { max: 50, field: "identity", entries: "identities" };
const NOT_FOUND: Error = Error::NotFound("identity");

/// Adds the identity that an account starts with.
pub(crate) async fn insert_default(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    let name = store::find_account_name(tx.db(), account).await?;
    let values = default_of(&name, &tx.settings().country);
    store::insert_default(tx.db(), account, id, &values, now).await?;
    let record = Record { id, values, is_default: true, logo: None, created_at: now, updated_at: now };
    audit(tx, &record);
    Ok(())
}

/// Gives an identity that was never changed the current name of the account.
pub(crate) async fn follow_account_name(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let name = store::find_account_name(tx.db(), account).await?;
    store::follow_account_name(tx.db(), account, &name, now).await?;
    for record in store::list(tx.db(), account).await? {
        audit(tx, &record);
    }
    Ok(())
}

pub(crate) async fn create(
    tx: &mut Tx<'_>,
    _lock: &SettingsLock,
    given: IdentityInput,
) -> Result<Record, Error> {
    let home = &tx.settings().country;
    let values = rules::apply(UpdateMask::All, given, &IdentityInput::default(), home, &mut tx.faults);
    tx.valid()?;
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    let others = store::insert(tx.db(), account, id, &values, now).await?;
    LIMIT.check(others, &mut tx.faults);
    tx.valid()?;
    let record = Record { id, values, is_default: false, logo: None, created_at: now, updated_at: now };
    audit(tx, &record);
    Ok(record)
}

/// Changes the fields that the mask names.
pub(crate) async fn update(
    tx: &mut Tx<'_>,
    _lock: &SettingsLock,
    id: &str,
    mask: UpdateMask<'_>,
    given: IdentityInput,
) -> Result<Record, Error> {
    let found = find(tx, id).await?;
    let current = found.as_ref().map(|record| record.values.clone()).unwrap_or_default();
    let home = &tx.settings().country;
    let values = rules::apply(mask, given, &current, home, &mut tx.faults);
    // Faults of the body are reported before an id that does not exist.
    tx.valid()?;
    let mut record = found.ok_or(NOT_FOUND)?;
    if values != record.values {
        let (account, now) = (tx.account(), tx.now());
        store::update(tx.db(), account, record.id, &values, now).await?;
        record.values = values;
        record.updated_at = now;
    }
    audit(tx, &record);
    Ok(record)
}

pub(crate) async fn delete(tx: &mut Tx<'_>, _lock: &SettingsLock, id: &str) -> Result<(), Error> {
    let record = get(tx, id).await?;
    if record.is_default {
        return Err(Error::InUse("identity"));
    }
    let account = tx.account();
    store::delete(tx.db(), account, record.id).await?;
    tx.removed(AUDIT_KIND, record.id);
    Ok(())
}

pub(crate) async fn set_default(tx: &mut Tx<'_>, _lock: &SettingsLock, id: &str) -> Result<Record, Error> {
    let mut record = get(tx, id).await?;
    if !record.is_default {
        let (account, now) = (tx.account(), tx.now());
        store::set_default(tx.db(), account, record.id, now).await?;
        // The previous default has changed too.
        for other in store::list(tx.db(), account).await? {
            audit(tx, &other);
        }
        record.is_default = true;
        record.updated_at = now;
    }
    audit(tx, &record);
    Ok(record)
}

/// Replaces the logo; without bytes, removes it.
pub(crate) async fn set_logo(
    tx: &mut Tx<'_>,
    _lock: &SettingsLock,
    id: &str,
    bytes: &[u8],
) -> Result<Record, Error> {
    let logo = if bytes.is_empty() { None } else { read_logo(tx, bytes) };
    let mut record = get(tx, id).await?;
    let (account, now) = (tx.account(), tx.now());
    store::put_logo(tx.db(), account, record.id, logo.as_ref(), now).await?;
    record.logo = logo.map(|logo| logo.format);
    record.updated_at = now;
    audit(tx, &record);
    Ok(record)
}

/// The logo in the bytes of a request; a refused one is reported as a fault.
fn read_logo(tx: &mut Tx<'_>, bytes: &[u8]) -> Option<Logo> {
    match logo::check(bytes) {
        Ok(format) => Some(Logo { format, bytes: bytes.to_vec() }),
        Err(refusal) => {
            let fault = match refusal {
                logo::Refusal::TooLarge => Fault::TooLong,
                _ => Fault::BadFormat,
            };
            tx.faults.add(&At::ROOT.name("logo"), fault, refusal.to_string());
            None
        }
    }
}

/// Records an identity in the log.
fn audit(tx: &mut Tx<'_>, record: &Record) {
    tx.changed(AUDIT_KIND, record.id, &Identity::from(record.clone()));
}

async fn find(tx: &mut Tx<'_>, id: &str) -> Result<Option<Record>, Error> {
    id::ignore_malformed(&mut tx.faults);
    let account = tx.account();
    match id::parse(id) {
        Some(id) => store::find(tx.db(), account, id).await,
        None => Ok(None),
    }
}

async fn get(tx: &mut Tx<'_>, id: &str) -> Result<Record, Error> {
    let found = find(tx, id).await?;
    tx.valid()?;
    found.ok_or(NOT_FOUND)
}
