//! What changes of identities do. All of them happen under the lock on the account's settings.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::At;
use proto::api::Fault;
use proto::billing::{CorporateIdentity, Identity, IdentityInput};
use render::printed::Logo;
use uuid::Uuid;

use super::{NOT_FOUND, Record, default_of, logo, rules, store};
use crate::error::Error;
use crate::settings_base::SettingsLock;
use crate::settings_base::rules::ListLimit;

/// The identity with all that it has, for the audit log.
const AUDIT_KIND: &str = "identity";
/// The same as the public API shows it.
const PUBLIC_KIND: &str = "corporate_identity";
const LIMIT: ListLimit = ListLimit { max: 50, field: "identity", entries: "identities" };

/// Adds the identity that an account starts with.
pub(crate) async fn insert_default(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    let name = store::find_account_name(tx.db(), account).await?;
    let values = default_of(&name, &tx.settings().country);
    store::insert_default(tx.db(), account, id, &values, now).await?;
    let record = Record::new(id, values, true, now);
    audit(tx, &record);
    Ok(())
}

/// Gives an identity that was never changed the current name of the account.
pub(crate) async fn follow_account_name(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let name = store::find_account_name(tx.db(), account).await?;
    match store::follow_account_name(tx.db(), account, &name, now).await? {
        Some(changed) => audit_stored(tx, changed).await,
        None => Ok(()),
    }
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
    let record = Record::new(id, values, false, now);
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
        record.values = values;
        record.touch(now);
        store::update(tx.db(), account, &record).await?;
        audit(tx, &record);
    }
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
    tx.removed(PUBLIC_KIND, record.id);
    Ok(())
}

pub(crate) async fn set_default(tx: &mut Tx<'_>, _lock: &SettingsLock, id: &str) -> Result<Record, Error> {
    let mut record = get(tx, id).await?;
    if !record.is_default {
        let (account, now) = (tx.account(), tx.now());
        if let Some(previous) = store::set_default(tx.db(), account, record.id, now).await? {
            audit_stored(tx, previous).await?;
        }
        record.is_default = true;
        record.touch(now);
        audit(tx, &record);
    }
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
    if store::put_logo(tx.db(), account, record.id, logo.as_ref(), now).await? {
        record.logo = logo.map(|logo| logo.format);
        record.touch(now);
        audit(tx, &record);
    }
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
    tx.changed(PUBLIC_KIND, record.id, &CorporateIdentity::from(record.clone()));
}

/// Records an identity that was changed by a statement alone.
async fn audit_stored(tx: &mut Tx<'_>, id: Uuid) -> Result<(), Error> {
    let account = tx.account();
    if let Some(record) = store::find(tx.db(), account, id).await? {
        audit(tx, &record);
    }
    Ok(())
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

/// Shows the identities with these ids, as the public API does.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(record) = store::find(tx.db(), account, id).await? {
            shown.add(id, &CorporateIdentity::from(record));
        }
    }
    Ok(())
}
