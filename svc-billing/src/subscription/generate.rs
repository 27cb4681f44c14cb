//! Making the invoices that are due: one worker for all accounts, one transaction for each invoice.
//!
//! What keeps a period from having two invoices, whoever is killed when: the turn is decided while the subscription is
//! locked, its next date moves in the transaction that makes the invoice, and the database refuses a second invoice of a
//! period.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chassis_base::Error as ChassisError;
use chassis_data::Tx;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next, backoff};
use chrono::{DateTime, TimeDelta, Utc};
use proto::billing::{DocumentInput, GenerationMode};
use proto::relations::Relation;
use uuid::Uuid;

use super::operations::audit;
use super::rules::lines;
use super::rules::plan::{Status, Turn};
use super::{Full, store};
use crate::clients::Named;
use crate::document::operations::New;
use crate::document::rpc::Shared;
use crate::document::{self, Kind, Links, Origin, Period, operations as documents};
use crate::online::Till;
use crate::{Error, debit, settings};

/// How many turns one job takes.
const BATCH: usize = 20;
/// For looking up a client.
const LOOK_UP: Duration = Duration::from_secs(5);
/// When a subscription is tried again whose invoice cannot be made as things are.
const FIRST_WAIT: TimeDelta = TimeDelta::minutes(1);
const MOST_WAIT: TimeDelta = TimeDelta::hours(1);

/// The worker that makes the invoices of subscriptions, and ends those whose end has passed.
pub fn worker(shared: Arc<Shared>, till: Arc<Till>) -> Worker {
    let due = Due::new("billing.subscription work", "work.due_at is not null", "work.due_at");
    Worker::new("subscriptions", due, move |job| {
        let (shared, till) = (Arc::clone(&shared), Arc::clone(&till));
        async move { run(&job, &shared, &till).await }
    })
}

async fn run(job: &Job, shared: &Shared, till: &Till) -> Result<Next, ChassisError> {
    let provider = till.provider_of(job.account_id()).await?;
    let mut clients: HashMap<Uuid, Option<Relation>> = HashMap::new();
    for _ in 0..BATCH {
        let due = job
            .db()
            .read(async |connection| store::find_due(connection, job.account_id(), job.now()).await)
            .await?;
        let Some(due) = due else { return Ok(Next::WhenDue) };
        if let Some(id) = due.client_id.filter(|id| !clients.contains_key(id)) {
            let found = shared.clients.get(job.account(), id, Instant::now() + LOOK_UP).await?;
            clients.insert(id, found);
        }
        let client = due.client_id.and_then(|id| clients.get(&id).cloned().flatten());
        let visit = Visit { id: due.id, client, links: shared.links.clone(), provider };
        if let Err(error) = job.write(&visit, take_turn).await {
            // One that cannot be billed as it is must not keep the others waiting.
            let Some(reason) = lasting(&error) else { return Err(error) };
            tracing::warn!(subscription = %due.id, reason, "an invoice that is due cannot be made");
            let failures = u32::try_from(due.failures).unwrap_or_default().saturating_add(1);
            let again_at = job.now() + backoff(failures, FIRST_WAIT, MOST_WAIT);
            job.write(&Failure { id: due.id, again_at, reason }, note_failure).await?;
        }
    }
    Ok(Next::Now)
}

/// What one turn of a subscription needs.
struct Visit {
    id: Uuid,
    client: Option<Relation>,
    links: Links,
    /// Who collects what is billed.
    provider: &'static str,
}

/// Does what the subscription's plan asks for today.
async fn take_turn(tx: &mut Tx<'_>, visit: &Visit) -> Result<(), Error> {
    let (account, today, zone) = (tx.account(), tx.today(), tx.settings().timezone);
    tx.continues(visit.id).await?;
    let Some(mut full) = store::lock(tx.db(), account, visit.id).await? else { return Ok(()) };
    match full.record.plan.turn(today) {
        Turn::Bill(period) => {
            bill(tx, visit, &full, period).await?;
            full.record.plan.billed();
            full.record.failures = 0;
            full.record.last_error.clear();
        }
        Turn::End => full.record.plan.status = Status::Ended,
        // The account has moved to another time zone since, or somebody else was here first.
        Turn::Nothing => {}
    }
    let record = &mut full.record;
    record.updated_at = tx.now();
    store::update(tx.db(), account, record, record.due_at(zone)).await?;
    audit(tx, record);
    Ok(())
}

/// Makes the invoice of a period, as a create request would, and has it collected where the client has a mandate.
async fn bill(tx: &mut Tx<'_>, visit: &Visit, full: &Full, period: Period) -> Result<(), Error> {
    let account = tx.account();
    let client = match &visit.client {
        Some(client) => Named::Found(Box::new(client.clone())),
        None => Named::Unknown("client_id"),
    };
    let origin = Origin { subscription: visit.id, period };
    // Never so as long as nobody changes the tables by hand; then the plan still goes on.
    if document::store::is_billed(tx.db(), account, origin).await? {
        return Ok(());
    }
    let new = New { kind: Kind::Invoice, client, links: visit.links.clone(), origin: Some(origin) };
    let known = settings::store::for_documents(tx.db(), account).await?;
    let given = DocumentInput {
        title: full.record.title.clone(),
        invoice_date: period.from.to_string(),
        generation_mode: GenerationMode::Final.into(),
        rows: lines::as_rows(&full.lines, &known.rates),
        ..DocumentInput::default()
    };
    let invoice = documents::create(tx, &new, &given).await?;
    if let Some(invoice) = chassis_base::id::parse(&invoice.id) {
        debit::collect(tx, visit.provider, invoice).await?;
    }
    Ok(())
}

/// Why a turn fails as long as nobody changes anything; `None` for what passes by itself.
fn lasting(error: &ChassisError) -> Option<String> {
    match error {
        ChassisError::Invalid(faults) => {
            let details = faults.entries().iter().map(|entry| entry.detail.as_str());
            Some(details.collect::<Vec<_>>().join("; "))
        }
        ChassisError::Problem { detail, .. } => Some(detail.clone()),
        _ => None,
    }
}

struct Failure {
    id: Uuid,
    again_at: DateTime<Utc>,
    reason: String,
}

async fn note_failure(tx: &mut Tx<'_>, failure: &Failure) -> Result<(), Error> {
    let account = tx.account();
    tx.unaudited("an attempt that failed; the subscription is as it was");
    store::fail(tx.db(), account, failure.id, failure.again_at, &failure.reason).await
}
