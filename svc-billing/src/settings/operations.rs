//! What changes of the billing settings do.

use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use proto::At;
use proto::api::Fault;
use proto::billing::BillingSettings;

use super::{Settings, rules, store};
use crate::error::Error;
use crate::settings_base::SettingsLock;
use crate::tax_rate;

const AUDIT_KIND: &str = "billing_settings";

/// Stores the settings of an account that has none; tells whether it had none.
pub(crate) async fn insert_defaults(tx: &mut Tx<'_>) -> Result<bool, Error> {
    let (account, now) = (tx.account(), tx.now());
    let settings = Settings::of_country(&tx.settings().country);
    let inserted = store::insert(tx.db(), account, &settings, now).await?;
    if inserted {
        audit(tx, settings);
    }
    Ok(inserted)
}

/// Changes the fields that the mask names.
pub(crate) async fn update(
    tx: &mut Tx<'_>,
    _lock: &SettingsLock,
    mask: UpdateMask<'_>,
    given: &BillingSettings,
) -> Result<Settings, Error> {
    let (account, now) = (tx.account(), tx.now());
    let current = store::get(tx.db(), account).await?;
    let next = rules::apply(mask, given, &current, &mut tx.faults);
    if mask.has("default_tax_code")
        && !tax_rate::store::exists(tx.db(), account, &next.default_tax_code).await?
    {
        let at = At::ROOT.name("settings");
        let detail = "default_tax_code must be the code of a tax rate for sales";
        tx.faults.add(&at.name("default_tax_code"), Fault::UnknownReference, detail);
    }
    tx.valid()?;
    if next != current {
        store::update(tx.db(), account, &next, now).await?;
    }
    audit(tx, next.clone());
    Ok(next)
}

/// Records the settings in the log. An account has one set of them, so its id names the record.
fn audit(tx: &mut Tx<'_>, settings: Settings) {
    let account = tx.account();
    tx.changed(AUDIT_KIND, account, &BillingSettings::from(settings));
}
