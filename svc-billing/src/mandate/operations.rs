//! Storing what a provider reports of clients and their mandates, each inside a write transaction.

use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use chrono::{DateTime, TimeDelta, Utc};
use provider::Mandate;
use uuid::Uuid;

use super::rules::{self, MandateReport};
use super::{Debtor, message, store};
use crate::error::Error;
use crate::online_payment::store::find_of_client;
use crate::online_payment::{OnlinePayment, ProviderName, Purpose, Status};

/// After this time a mandate is fetched again whose worker was killed.
const TAKEOVER_DELAY: TimeDelta = TimeDelta::minutes(1);

/// Stores what a payment, which was `before`, and perhaps the mandates fetched with it, say of the client's mandate.
/// `None` when the client is not a customer of the provider.
pub(crate) async fn apply_payment(
    tx: &mut Tx<'_>,
    client: Uuid,
    before: &OnlinePayment,
    payment: &OnlinePayment,
    report: Option<MandateReport<'_>>,
) -> Result<Option<Debtor>, Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(current) = store::lock(tx.db(), account, client, &payment.provider).await? else {
        return Ok(None);
    };
    let changed = rules::apply_payment(&current, payment, report, now);
    let is_mandate_changed = changed != current;
    let is_verification_changed = payment.purpose == Purpose::Verification && payment.status != before.status;
    if !is_mandate_changed && !is_verification_changed {
        return Ok(Some(current));
    }
    let latest = find_verification(tx, &current).await?;
    let verification = latest.as_ref().map(|latest| latest.status);
    let earlier =
        if latest.is_some_and(|latest| latest.id == before.id) { Some(before.status) } else { verification };
    let debtor = count_change(tx, (&current, earlier), (changed, verification));
    if is_mandate_changed {
        store::update(tx, &debtor, rules::next_fetch(&debtor, now)).await?;
    } else if debtor != current {
        store::update_customer(tx, &debtor).await?;
    }
    Ok(Some(debtor))
}

/// Stores that the client was asked for a mandate: its latest verification was `earlier`, and is `verification` now.
pub(crate) async fn apply_verification(
    tx: &mut Tx<'_>,
    debtor: &Debtor,
    earlier: Option<Status>,
    verification: Status,
) -> Result<(), Error> {
    let debtor = count_change(tx, (debtor, earlier), (debtor.clone(), Some(verification)));
    store::update_customer(tx, &debtor).await
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

/// Stores the mandates that the provider listed for a client, and schedules the next fetch.
pub(crate) async fn record_mandates(tx: &mut Tx<'_>, fetched: &FetchedMandates) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(current) = store::lock(tx.db(), account, fetched.client, fetched.provider.0).await? else {
        return Ok(());
    };
    let changed =
        rules::apply_report(&current, MandateReport { mandates: &fetched.mandates, at: fetched.at });
    if changed == current {
        return Ok(());
    }
    let verification = find_verification(tx, &current).await?.map(|latest| latest.status);
    let debtor = count_change(tx, (&current, verification), (changed, verification));
    store::update(tx, &debtor, rules::next_fetch(&debtor, now)).await
}

/// Stores the provider's id of a client, unless one is stored already.
pub(crate) async fn set_customer(
    tx: &mut Tx<'_>,
    client: Uuid,
    provider: &str,
    customer: &str,
) -> Result<(), Error> {
    let account = tx.account();
    let found = store::lock(tx.db(), account, client, provider).await?;
    let Some(current) = found.filter(|debtor| debtor.customer_id.is_empty()) else { return Ok(()) };
    let changed = Debtor { customer_id: customer.to_owned(), ..current.clone() };
    let verification = find_verification(tx, &current).await?.map(|latest| latest.status);
    let debtor = count_change(tx, (&current, verification), (changed, verification));
    store::update_customer(tx, &debtor).await
}

/// The changed debtor as it is to be stored. A change that is shown raises its version and is stored in the log; a fetch
/// that found nothing new is none. Both come with the status of the latest verification, which is shown too.
fn count_change(
    tx: &mut Tx<'_>,
    (current, earlier): (&Debtor, Option<Status>),
    (mut changed, verification): (Debtor, Option<Status>),
) -> Debtor {
    if message::stored(&changed, verification) == message::stored(current, earlier) {
        tx.unaudited("the mandate was fetched and is unchanged");
        return changed;
    }
    changed.version += 1;
    changed.updated_at = tx.now();
    tx.changed("mandate", changed.client_id, &message::stored(&changed, verification));
    changed
}

/// The latest verification of a debtor's client.
async fn find_verification(tx: &mut Tx<'_>, debtor: &Debtor) -> Result<Option<OnlinePayment>, Error> {
    let account = tx.account();
    find_of_client(tx.db(), account, debtor.client_id, &debtor.provider, Purpose::Verification).await
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

/// Shows the mandates of these clients.
pub(crate) async fn show(tx: &mut Tx<'_>, clients: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for client in uuids(clients) {
        if let Some(debtor) = store::find_latest(tx.db(), account, client).await? {
            let verification = find_verification(tx, &debtor).await?.map(|latest| latest.status);
            shown.add(client, &message::stored(&debtor, verification));
        }
    }
    Ok(())
}
