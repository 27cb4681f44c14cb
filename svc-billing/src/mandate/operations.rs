//! Storing what a provider reports of clients and their mandates, each inside a write transaction.

use chassis_data::Tx;
use chrono::{DateTime, TimeDelta, Utc};
use provider::Mandate;
use uuid::Uuid;

use super::rules::{self, MandateReport};
use super::{Debtor, store};
use crate::error::Error;
use crate::online_payment::{OnlinePayment, ProviderName};

/// After this time a mandate is fetched again whose worker was killed.
const TAKEOVER_DELAY: TimeDelta = TimeDelta::minutes(1);

/// Stores what a payment, and perhaps the mandates fetched with it, say of the client's mandate. `None` when the
/// client is not a customer of the provider.
pub(crate) async fn apply_payment(
    tx: &mut Tx<'_>,
    client: Uuid,
    payment: &OnlinePayment,
    report: Option<MandateReport<'_>>,
) -> Result<Option<Debtor>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(current) = store::lock(tx.db(), account, client, &payment.provider).await? else {
        return Ok(None);
    };
    let changed = rules::apply_payment(&current, payment, report, now);
    save(tx, &current, &changed).await?;
    Ok(Some(changed))
}

/// The mandates of a client, as the provider listed them.
pub(crate) struct FetchedMandates {
    pub client: Uuid,
    pub provider: ProviderName,
    /// Newest first.
    pub mandates: Vec<Mandate>,
    /// When the provider was asked.
    pub at: DateTime<Utc>,
}

/// Stores the mandates that the provider listed for a client.
pub(crate) async fn record_mandates(tx: &mut Tx<'_>, fetched: &FetchedMandates) -> Result<(), Error> {
    let account = tx.account();
    let Some(current) = store::lock(tx.db(), account, fetched.client, fetched.provider.0).await? else {
        return Ok(());
    };
    let changed =
        rules::apply_report(&current, MandateReport { mandates: &fetched.mandates, at: fetched.at });
    save(tx, &current, &changed).await
}

/// Stores a debtor that changed, and schedules the next fetch of its mandate. A fetch that found nothing new leaves no
/// entry in the log.
async fn save(tx: &mut Tx<'_>, current: &Debtor, changed: &Debtor) -> Result<(), Error> {
    if changed == current {
        return Ok(());
    }
    let now = tx.now();
    store::update(tx, changed, rules::next_fetch(changed, now)).await?;
    let only_fetched = Debtor { asked_at: current.asked_at, ..changed.clone() } == *current;
    if only_fetched {
        tx.unaudited("the mandate was fetched and is unchanged");
    } else {
        audit(tx, changed);
    }
    Ok(())
}

/// Stores the provider's id of a client.
pub(crate) async fn set_customer(
    tx: &mut Tx<'_>,
    client: Uuid,
    provider: &str,
    customer: &str,
) -> Result<(), Error> {
    let account = tx.account();
    store::set_customer(tx, client, provider, customer).await?;
    if let Some(debtor) = store::find(tx.db(), account, client, provider).await? {
        audit(tx, &debtor);
    }
    Ok(())
}

/// Claims the valid mandate that has been due longest. Claiming moves its due time, so that it is fetched again should
/// this process end before the answer is stored.
pub(crate) async fn claim(
    tx: &mut Tx<'_>,
    provider: &ProviderName,
) -> Result<Option<store::DueMandate>, Error> {
    tx.unaudited("a mandate is about to be fetched");
    let again_at = tx.now() + TAKEOVER_DELAY;
    store::claim(tx, provider.0, again_at).await
}

/// A fetch that failed and is repeated later.
pub(crate) struct Postponed {
    pub client: Uuid,
    pub provider: ProviderName,
    pub until: DateTime<Utc>,
}

pub(crate) async fn postpone(tx: &mut Tx<'_>, postponed: &Postponed) -> Result<(), Error> {
    tx.unaudited("a mandate could not be fetched; it is unchanged");
    store::postpone(tx, postponed.client, postponed.provider.0, postponed.until).await
}

/// Stores the mandate in the log.
pub(crate) fn audit(tx: &mut Tx<'_>, debtor: &Debtor) {
    tx.changed("mandate", debtor.client_id, &proto::billing::Mandate::from(debtor));
}
