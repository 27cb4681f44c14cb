//! Changes of deals: load, decide by the rules, store, then record the change in events and in the log.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::log::snapshot::{Shown, uuids};
use chassis_data::{LazyTx, Plan, Tx};
use proto::api::Fault;
use proto::crm::{Deal, DealDetail, DealInput, DealMoveInput, DealStatus};
use proto::{At, Faults};
use uuid::Uuid;

use super::rules::{self, RequestedPhase};
use super::{AcceptedQuote, PhaseRef, Record, RecordWithHistory, Step, Values, events, store};
use crate::error::Error;
use crate::pipeline::{self, Pipeline};
use crate::{kind, setup, source};

const NOT_FOUND: Error = Error::NotFound("deal");

pub(crate) async fn create(tx: &mut LazyTx<'_>, given: &DealInput) -> Result<Deal, Error> {
    let at = At::ROOT.name("deal");
    rules::check_fields(UpdateMask::All, given, &at, &mut tx.faults);
    let pipelines = list_pipelines(tx).await?;
    let requested = RequestedPhase::new(UpdateMask::All, given);
    let phase = rules::resolve_phase(&pipelines, requested, None, &at, &mut tx.faults);
    check_source(tx, &given.source, "", &at).await?;
    tx.valid()?;
    // Without a phase there is a fault, and `valid` has returned it.
    let phase = phase.ok_or_else(|| chassis_base::Error::Internal("a deal without a phase".into()))?;

    let now = tx.now();
    let values = rules::create(given, phase);
    let status = values.status;
    let record = Record {
        id: tx.id(),
        version: 1,
        timed_events: 0,
        values,
        phase_since: now,
        won_at: (status == DealStatus::Won).then_some(now),
        lost_at: (status == DealStatus::Lost).then_some(now),
        created_at: now,
        updated_at: now,
    };
    let phase_name = rules::phase_name(&pipelines, phase).unwrap_or_default();
    let first = Step { at: now, phase, phase_name: phase_name.clone(), status, accepted_quote: None };
    let account = tx.account();
    tx.write_last(store::insert(account, &record, &first))?;
    tx.list(&record.listing());
    tx.refers_to(record.values.client_id);
    events::created(tx, &record);
    Ok(record_change(tx, RecordWithHistory { record, phase_name, history: vec![first] }))
}

/// Changes what the mask names; without a mask, everything. `missing` are the faults of references to other services,
/// which count only when the deal itself exists.
pub(crate) async fn update(
    tx: &mut LazyTx<'_>,
    id: &str,
    given: &DealInput,
    named: UpdateMask<'_>,
    missing: &Faults,
) -> Result<Deal, Error> {
    id::ignore_malformed(&mut tx.faults);
    let at = At::ROOT.name("deal");
    rules::check_fields(named, given, &at, &mut tx.faults);
    let Some(mut deal) = find(tx, id).await? else {
        // Faults of the body are reported before an id that does not exist.
        tx.valid()?;
        return Err(NOT_FOUND);
    };
    tx.faults.extend(missing.clone());
    let current = deal.record.values.phase;
    let requested = RequestedPhase::new(named, given);
    let phase = if requested.pipeline.is_empty() && requested.phase.is_empty() {
        Some(current)
    } else {
        let pipelines = list_pipelines(tx).await?;
        let phase = rules::resolve_phase(&pipelines, requested, Some(current), &at, &mut tx.faults);
        rename_phase(&mut deal, &pipelines, phase);
        phase
    };
    if named.has("source") {
        check_source(tx, &given.source, &deal.record.values.source, &at).await?;
    }
    tx.valid()?;
    let values = rules::apply(named, given, phase.unwrap_or(current), deal.record.values.clone());
    save(tx, deal, values)
}

/// Moves a deal to another phase of its pipeline, to another status, or both.
pub(crate) async fn move_deal(tx: &mut LazyTx<'_>, id: &str, given: &DealMoveInput) -> Result<Deal, Error> {
    id::ignore_malformed(&mut tx.faults);
    let at = At::ROOT.name("move");
    let phase = given.phase_id.as_str();
    let status = given.status();
    if phase.is_empty() && status == DealStatus::Unspecified {
        tx.faults.add(&at, Fault::NoField, "send phase_id, status or both");
    }
    let Some(mut deal) = find(tx, id).await? else {
        tx.valid()?;
        return Err(NOT_FOUND);
    };
    let mut values = deal.record.values.clone();
    if !phase.is_empty() {
        let pipelines = list_pipelines(tx).await?;
        let requested = RequestedPhase { pipeline: "", phase };
        let resolved = rules::resolve_phase(&pipelines, requested, Some(values.phase), &at, &mut tx.faults);
        rename_phase(&mut deal, &pipelines, resolved);
        values.phase = resolved.unwrap_or(values.phase);
    }
    tx.valid()?;
    if status != DealStatus::Unspecified {
        values.status = status;
    }
    save(tx, deal, values)
}

/// Wins or loses a deal. A repetition changes nothing and emits no event.
pub(crate) async fn close(tx: &mut LazyTx<'_>, id: &str, status: DealStatus) -> Result<Deal, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let deal = find(tx, id).await?.ok_or(NOT_FOUND)?;
    let values = Values { status, ..deal.record.values.clone() };
    save(tx, deal, values)
}

pub(crate) async fn delete(tx: &mut Tx<'_>, id: &str) -> Result<Deal, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(id).ok_or(NOT_FOUND)?;
    let record = store::delete(tx.db(), account, id).await?.ok_or(NOT_FOUND)?;
    tx.unlist(&record.listing());
    tx.removed(kind::DEAL, record.id);
    events::deleted(tx, &record);
    Ok(record.into())
}

/// Records the acceptance of quotes in the histories of the clients' deals. Several quotes of one deal are one change of
/// it.
pub(crate) async fn accept_quotes(tx: &mut Tx<'_>, quotes: &[&AcceptedQuote]) -> Result<(), Error> {
    let account = tx.account();
    let mut changed: Vec<Uuid> = Vec::new();
    for quote in quotes {
        let Some(mut deal) = find_deal_of_quote(tx, quote).await? else { continue };
        let (now, record) = (tx.now(), &mut deal.record);
        let since = record.version;
        if !changed.contains(&record.id) {
            changed.push(record.id);
            record.version += 1;
            record.updated_at = now;
        }
        let step = deal.next_step(now, Some(quote.id));
        store::update(account, &deal.record, Some(&step), since).execute(tx.db()).await?;
        events::quote_accepted(tx, &deal.record, quote);
        deal.add_step(step);
        record_change(tx, deal);
    }
    Ok(())
}

/// The deal that an accepted quote is for, locked. The event does not say which one that is, so there is none unless the
/// client has exactly one open deal. There is none either if the quote was heard of before.
async fn find_deal_of_quote(
    tx: &mut Tx<'_>,
    quote: &AcceptedQuote,
) -> Result<Option<RecordWithHistory>, Error> {
    let account = tx.account();
    let now = tx.now();
    let Some(client) = quote.client_id else { return Ok(None) };
    // Stored also without a matching deal, so that a repeated delivery has no effect even if a deal matches by then.
    if !store::insert_accepted_quote(tx.db(), account, quote.id, now).await? {
        return Ok(None);
    }
    match store::find_two_open_locked(tx.db(), account, client).await?[..] {
        [only] => Ok(store::list_with_history(tx.db(), account, &[only]).await?.pop()),
        _ => Ok(None),
    }
}

/// Stores new values of a deal, and emits the events of the change. Without a changed value it stores nothing.
fn save(plan: &mut Plan<'_>, mut deal: RecordWithHistory, values: Values) -> Result<Deal, Error> {
    let (account, now) = (plan.account(), plan.now());
    let (since, before) = (deal.record.version, deal.record.listing());
    let client = deal.record.values.client_id;
    let changes = rules::update(&mut deal.record, values, now);
    if !changes.any {
        plan.unaudited("it is as it was");
        return Ok(deal.record.into());
    }
    let step = changes.is_step().then(|| deal.next_step(now, None));
    plan.write_last(store::update(account, &deal.record, step.as_ref(), since))?;
    plan.relist(&before, &deal.record.listing());
    if deal.record.values.client_id != client {
        plan.refers_to(deal.record.values.client_id);
    }
    events::changed(plan, &deal.record, changes);
    if let Some(step) = step {
        deal.add_step(step);
    }
    Ok(record_change(plan, deal))
}

/// Records the current deal with its history in the log. Returns the message without the history.
fn record_change(plan: &mut Plan<'_>, deal: RecordWithHistory) -> Deal {
    let short = Deal::from(deal.record.clone());
    plan.changed(kind::DEAL, deal.record.id, &DealDetail::from(deal));
    short
}

/// A deal that is about to change, with a lock if the transaction is open.
async fn find(tx: &mut LazyTx<'_>, id: &str) -> Result<Option<RecordWithHistory>, Error> {
    let account = tx.account();
    let Some(id) = id::parse(id) else { return Ok(None) };
    // A statement of its own: the next one sees what was written while this one waited for the lock.
    if let Some(connection) = tx.opened() {
        store::lock(connection, account, id).await?;
    }
    let find = async |connection: &mut _| store::list_with_history(connection, account, &[id]).await;
    Ok(tx.query(find).await?.pop())
}

/// Gives the deal the name of the phase that it moves to.
fn rename_phase(deal: &mut RecordWithHistory, pipelines: &[Pipeline], phase: Option<PhaseRef>) {
    if let Some(name) = phase.and_then(|phase| rules::phase_name(pipelines, phase)) {
        deal.phase_name = name;
    }
}

/// The pipelines of the account. An account that was never provisioned gets its defaults first. Pipelines are not
/// locked: a phase that is removed before this write ends makes the foreign key refuse the deal, and the write runs again.
async fn list_pipelines(tx: &mut LazyTx<'_>) -> Result<Vec<Pipeline>, Error> {
    let account = tx.account();
    let list = async |connection: &mut _| pipeline::store::list(connection, account).await;
    let pipelines = tx.query(list).await?;
    if !pipelines.is_empty() {
        return Ok(pipelines);
    }
    let tx = tx.open().await?;
    setup::operations::ensure_defaults(tx).await?;
    pipeline::store::list(tx.db(), account).await
}

/// Refuses the name of a source that does not exist. A deal may keep the name of a source that was removed.
async fn check_source(tx: &mut LazyTx<'_>, given: &str, current: &str, at: &At<'_>) -> Result<(), Error> {
    let at = at.name("source");
    if given.is_empty() || given == current || tx.faults.cover(&at) {
        return Ok(());
    }
    let account = tx.account();
    let exists = async |connection: &mut _| source::store::exists(connection, account, given).await;
    if !tx.query(exists).await? {
        let detail = "source must be the name of a deal source; see GET /v1/deal-sources";
        tx.faults.add(&at, Fault::UnknownReference, detail);
    }
    Ok(())
}

/// Shows the deals with these ids, with their histories.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for deal in store::list_with_history(tx.db(), account, &uuids(ids)).await? {
        shown.add(deal.record.id, &DealDetail::from(deal));
    }
    Ok(())
}
