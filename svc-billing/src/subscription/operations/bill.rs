//! Creating the invoice of a period, and ending a subscription whose end has passed. Called by the worker.

use chassis_data::Tx;
use chrono::{DateTime, Utc};
use proto::billing::{DocumentInput, GenerationMode};
use proto::relations::Relation;
use uuid::Uuid;

use super::audit;
use crate::clients::ClientLookup;
use crate::document::operations::New;
use crate::document::{self, BilledPeriod, Kind, Links, Period, operations as documents};
use crate::error::Error;
use crate::processor::operations::collect_family;
use crate::settings;
use crate::subscription::rules::lines;
use crate::subscription::rules::plan::{Status, Turn};
use crate::subscription::{Full, store};

/// A subscription that is due, with what was looked up for it before the transaction.
pub(crate) struct DueSubscription {
    pub id: Uuid,
    pub client: Option<Relation>,
    pub links: Links,
    /// The provider that collects the invoice.
    pub provider: &'static str,
}

/// Does what the plan of a subscription demands today.
pub(crate) async fn process_due(tx: &mut Tx<'_>, due: &DueSubscription) -> Result<(), Error> {
    let (account, now, today, zone) = (tx.account(), tx.now(), tx.today(), tx.settings().timezone);
    tx.continues(due.id).await?;
    // The plan is read again under the lock: a change may have been committed since the subscription was found due.
    let Some(mut full) = store::lock(tx.db(), account, due.id).await? else { return Ok(()) };
    match full.record.plan.turn(today) {
        Turn::Bill(period) => {
            bill(tx, due, &full, period).await?;
            full.record.plan.billed();
            full.record.failures = 0;
            full.record.last_error.clear();
        }
        Turn::End => full.record.plan.status = Status::Ended,
        // The account has moved to another time zone since, or another process was faster.
        Turn::Nothing => {
            tx.unaudited("a subscription was found due and is not");
            return store::update(tx.db(), account, &full.record, full.record.due_at(zone)).await;
        }
    }
    full.record.touch(now);
    store::update(tx.db(), account, &full.record, full.record.due_at(zone)).await?;
    tx.relist(&full.record.stored_listing(), &full.record.listing());
    audit(tx, &full);
    Ok(())
}

/// Creates the invoice of a period, as a create request would, and requests its collection if the client has a
/// mandate.
async fn bill(tx: &mut Tx<'_>, due: &DueSubscription, full: &Full, period: Period) -> Result<(), Error> {
    let account = tx.account();
    let client = match &due.client {
        Some(client) => ClientLookup::Found(Box::new(client.clone())),
        None => ClientLookup::NotFound("client_id"),
    };
    let billed_period = BilledPeriod { subscription: due.id, period };
    // Only true if the tables were changed by hand. The plan goes on, instead of failing on the index of the table
    // for ever.
    if document::store::is_billed(tx.db(), account, billed_period).await? {
        return Ok(());
    }
    let (links, billed_period) = (due.links.clone(), Some(billed_period));
    let new = New { kind: Kind::Invoice, client, links, billed_period };
    let defaults = settings::store::for_documents(tx.db(), account).await?;
    let given = DocumentInput {
        title: full.record.title.clone(),
        invoice_date: period.from.to_string(),
        generation_mode: GenerationMode::Final.into(),
        rows: lines::as_rows(&full.lines, &defaults.rates),
        ..DocumentInput::default()
    };
    let mut invoice = documents::create_family(tx, &new, &given).await?;
    collect_family(tx, due.provider, &mut invoice).await?;
    Ok(())
}

/// A failed attempt to create an invoice.
pub(crate) struct BillingFailure {
    pub id: Uuid,
    pub retry_at: DateTime<Utc>,
    pub reason: String,
}

/// Stores a failed attempt, in a transaction of its own: the one that failed was rolled back. Only a new reason changes
/// the subscription; the same one again only changes when the next attempt is.
pub(crate) async fn record_failure(tx: &mut Tx<'_>, failure: &BillingFailure) -> Result<(), Error> {
    let (account, now) = (tx.account(), tx.now());
    let Some(mut full) = store::lock(tx.db(), account, failure.id).await? else { return Ok(()) };
    let record = &mut full.record;
    record.failures = record.failures.saturating_add(1);
    let is_new = record.last_error != failure.reason;
    if is_new {
        record.last_error.clone_from(&failure.reason);
        record.touch(now);
    }
    store::update(tx.db(), account, record, Some(failure.retry_at)).await?;
    if is_new {
        audit(tx, &full);
    } else {
        tx.unaudited("an attempt failed as the one before; the subscription is unchanged");
    }
    Ok(())
}
