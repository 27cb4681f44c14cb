//! What every account starts with: settings, tax rates of its country, payment terms and an identity.

use chassis_data::Tx;

use crate::settings::{self, Settings};
use crate::{Error, identity, payment_term, tax_rate};

/// Creates the defaults of an account that has none. They are made once: what was changed or removed since stays so.
pub async fn defaults(tx: &mut Tx<'_>) -> Result<(), Error> {
    let (account, now, id) = (tx.account(), tx.now(), tx.id());
    let country = tx.settings().country.as_str();
    let settings = Settings::of_country(country);
    let name = identity::store::find_account_name(tx.db(), account).await?;
    if settings::store::insert(tx.db(), account, &settings, now).await? {
        settings::rpc::audit(tx, &settings.into());
        let rates = tax_rate::countries::rates_of(country);
        tax_rate::store::insert(tx.db(), account, &rates, now).await?;
        for rate in rates {
            tax_rate::rpc::audit(tx, &rate.into());
        }
        let terms = payment_term::defaults(country);
        payment_term::store::insert(tx.db(), account, &terms, now).await?;
        for term in terms {
            tx.changed(payment_term::rpc::AUDITED, &term.code, &term);
        }
        let values = identity::default_of(&name, country);
        identity::store::insert_default(tx.db(), account, id, &values, now).await?;
        let (created_at, updated_at) = (now, now);
        let identity = identity::Record { id, values, is_default: true, logo: None, created_at, updated_at };
        identity::rpc::audited(tx, identity);
    } else {
        identity::store::follow_account_name(tx.db(), account, &name, now).await?;
        for identity in identity::store::list(tx.db(), account).await? {
            identity::rpc::audited(tx, identity);
        }
    }
    Ok(())
}

/// The settings of an account, for who wants to change anything of them. Everyone else who does waits, so that what is
/// decided here, such as which of several is the default, is still so when it is written. An account that was never
/// provisioned gets its defaults first.
pub async fn lock(tx: &mut Tx<'_>) -> Result<Settings, Error> {
    let account = tx.account();
    if let Some(settings) = settings::store::find_locked(tx.db(), account).await? {
        return Ok(settings);
    }
    defaults(tx).await?;
    let settings = settings::store::find_locked(tx.db(), account).await?;
    settings
        .ok_or_else(|| chassis_base::Error::Internal("settings are gone after they were made".into()).into())
}
