//! The rpcs of `SettingsService` about identities.

use chassis_base::update_mask::UpdateMask;
use chassis_base::{AccountId, id};
use chassis_data::{Db, Tx};
use proto::At;
use proto::api::Fault;
use proto::billing::{
    CreateIdentityRequest, CreateIdentityResponse, DeleteIdentityRequest, DeleteIdentityResponse, Identity,
    IdentityInput, SetDefaultIdentityRequest, SetDefaultIdentityResponse, SetIdentityLogoRequest,
    SetIdentityLogoResponse, UpdateIdentityRequest, UpdateIdentityResponse,
};

use super::{Record, logo, rules, store};
use crate::settings::rules::check_room;
use crate::{Error, provision};

/// What the audit log calls it.
const AUDITED: &str = "identity";
/// Most identities of an account.
const MOST: i64 = 50;

const UNKNOWN: Error = Error::NotFound("identity");

pub async fn list(db: &Db, account: AccountId) -> Result<Vec<Record>, Error> {
    let records = db.read(async |connection| store::list(connection, account).await).await?;
    Ok(records)
}

pub async fn create(tx: &mut Tx<'_>, input: &CreateIdentityRequest) -> Result<CreateIdentityResponse, Error> {
    let given = input.identity.clone().unwrap_or_default();
    let home = &tx.settings().country;
    let values = rules::apply(UpdateMask::All, given, &IdentityInput::default(), home, &mut tx.faults);
    tx.valid()?;
    provision::lock(tx).await?;
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    let others = store::insert(tx.db(), account, id, &values, now).await?;
    check_room(others, MOST, "identity", "identities", &mut tx.faults);
    tx.valid()?;
    let record = Record { id, values, is_default: false, logo: None, created_at: now, updated_at: now };
    Ok(CreateIdentityResponse { data: Some(audited(tx, record)) })
}

pub async fn update(tx: &mut Tx<'_>, input: &UpdateIdentityRequest) -> Result<UpdateIdentityResponse, Error> {
    let found = find_locked(tx, &input.id).await?;
    let current = found.as_ref().map(|record| record.values.clone()).unwrap_or_default();
    let (named, home) = (UpdateMask::from(input.update_mask.as_ref()), &tx.settings().country);
    let given = input.identity.clone().unwrap_or_default();
    let values = rules::apply(named, given, &current, home, &mut tx.faults);
    // The faults of the body come before an unknown id.
    tx.valid()?;
    let mut record = found.ok_or(UNKNOWN)?;
    if values != record.values {
        let (account, now) = (tx.account(), tx.now());
        store::update(tx.db(), account, record.id, &values, now).await?;
        record.values = values;
        record.updated_at = now;
    }
    Ok(UpdateIdentityResponse { data: Some(audited(tx, record)) })
}

pub async fn delete(tx: &mut Tx<'_>, input: &DeleteIdentityRequest) -> Result<DeleteIdentityResponse, Error> {
    let record = get_locked(tx, &input.id).await?;
    if record.is_default {
        return Err(Error::InUse("identity"));
    }
    let account = tx.account();
    store::delete(tx.db(), account, record.id).await?;
    tx.removed(AUDITED, record.id);
    Ok(DeleteIdentityResponse {})
}

pub async fn set_default(
    tx: &mut Tx<'_>,
    input: &SetDefaultIdentityRequest,
) -> Result<SetDefaultIdentityResponse, Error> {
    let mut record = get_locked(tx, &input.id).await?;
    if !record.is_default {
        let (account, now) = (tx.account(), tx.now());
        store::set_default(tx.db(), account, record.id, now).await?;
        // The one that was the default before is none now.
        for other in store::list(tx.db(), account).await? {
            audited(tx, other);
        }
        record.is_default = true;
        record.updated_at = now;
    }
    Ok(SetDefaultIdentityResponse { data: Some(audited(tx, record)) })
}

pub async fn set_logo(
    tx: &mut Tx<'_>,
    input: &SetIdentityLogoRequest,
) -> Result<SetIdentityLogoResponse, Error> {
    let format = if input.logo.is_empty() {
        None
    } else {
        logo::check(&input.logo)
            .map_err(|refusal| {
                let fault =
                    if refusal == logo::Refusal::TooLarge { Fault::TooLong } else { Fault::BadFormat };
                tx.faults.add(&At::ROOT.name("logo"), fault, refusal.to_string());
            })
            .ok()
    };
    let mut record = get_locked(tx, &input.id).await?;
    let (account, now) = (tx.account(), tx.now());
    let logo = format.map(|format| (format, &input.logo[..]));
    store::put_logo(tx.db(), account, record.id, logo, now).await?;
    record.logo = format;
    record.updated_at = now;
    Ok(SetIdentityLogoResponse { data: Some(audited(tx, record)) })
}

/// An identity that was made or changed, as it is answered and as the audit log keeps it.
pub fn audited(tx: &mut Tx<'_>, record: Record) -> Identity {
    let id = record.id;
    let identity = Identity::from(record);
    tx.changed(AUDITED, id, &identity);
    identity
}

/// An identity that is about to be changed. The lock on the settings covers it.
async fn find_locked(tx: &mut Tx<'_>, id: &str) -> Result<Option<Record>, Error> {
    id::ignore_malformed(&mut tx.faults);
    provision::lock(tx).await?;
    let account = tx.account();
    match id::parse(id) {
        Some(id) => store::find(tx.db(), account, id).await,
        None => Ok(None),
    }
}

async fn get_locked(tx: &mut Tx<'_>, id: &str) -> Result<Record, Error> {
    let found = find_locked(tx, id).await?;
    tx.valid()?;
    found.ok_or(UNKNOWN)
}
