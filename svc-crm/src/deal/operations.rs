//! Changes of deals: load, decide by the rules, store, then record the change in events and in the log.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::api::Fault;
use proto::crm::{Deal, DealDetail, DealInput, DealMoveInput, DealStatus};
use proto::{At, Faults};
use uuid::Uuid;

use super::rules::{self, RequestedPhase};
use super::{AcceptedQuote, Record, RecordWithHistory, Step, Values, events, store};
use crate::error::Error;
use crate::pipeline::{self, Pipeline};
use crate::{kind, setup, source};

const NOT_FOUND: Error = Error::NotFound("deal");

pub(crate) async fn create(tx: &mut Tx<'_>, given: &DealInput) -> Result<Deal, Error> {
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
    let account = tx.account();
    let phase_name = store::insert(tx.db(), account, &record).await?;
    tx.list(&record.listing());
    events::created(tx, &record);
    let first = Step { at: now, phase, phase_name, status, accepted_quote: None };
    Ok(record_change(tx, record, vec![first]))
}

/// Changes what the mask names; without a mask, everything. `missing` are the faults of references to other services,
/// which count only when the deal itself exists.
pub(crate) async fn update(
    tx: &mut Tx<'_>,
    id: &str,
    given: &DealInput,
    named: UpdateMask<'_>,
    missing: &Faults,
) -> Result<Deal, Error> {
    id::ignore_malformed(&mut tx.faults);
    let at = At::ROOT.name("deal");
    rules::check_fields(named, given, &at, &mut tx.faults);
    let Some(record) = find_locked(tx, id).await? else {
        // Faults of the body are reported before an id that does not exist.
        tx.valid()?;
        return Err(NOT_FOUND);
    };
    tx.faults.extend(missing.clone());
    let current = record.values.phase;
    let requested = RequestedPhase::new(named, given);
    let phase = if requested.pipeline.is_empty() && requested.phase.is_empty() {
        Some(current)
    } else {
        let pipelines = list_pipelines(tx).await?;
        rules::resolve_phase(&pipelines, requested, Some(current), &at, &mut tx.faults)
    };
    if named.has("source") {
        check_source(tx, &given.source, &record.values.source, &at).await?;
    }
    tx.valid()?;
    let values = rules::apply(named, given, phase.unwrap_or(current), record.values.clone());
    save(tx, record, values).await
}

/// Moves a deal to another phase of its pipeline, to another status, or both.
pub(crate) async fn move_deal(tx: &mut Tx<'_>, id: &str, given: &DealMoveInput) -> Result<Deal, Error> {
    id::ignore_malformed(&mut tx.faults);
    let at = At::ROOT.name("move");
    let phase = given.phase_id.as_str();
    let status = given.status();
    if phase.is_empty() && status == DealStatus::Unspecified {
        tx.faults.add(&at, Fault::NoField, "send phase_id, status or both");
    }
    let Some(record) = find_locked(tx, id).await? else {
        tx.valid()?;
        return Err(NOT_FOUND);
    };
    let mut values = record.values.clone();
    if !phase.is_empty() {
        let pipelines = list_pipelines(tx).await?;
        let requested = RequestedPhase { pipeline: "", phase };
        let resolved = rules::resolve_phase(&pipelines, requested, Some(values.phase), &at, &mut tx.faults);
        values.phase = resolved.unwrap_or(values.phase);
    }
    tx.valid()?;
    if status != DealStatus::Unspecified {
        values.status = status;
    }
    save(tx, record, values).await
}

/// Wins or loses a deal. A repetition changes nothing and emits no event.
pub(crate) async fn close(tx: &mut Tx<'_>, id: &str, status: DealStatus) -> Result<Deal, Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let record = find_locked(tx, id).await?.ok_or(NOT_FOUND)?;
    let values = Values { status, ..record.values.clone() };
    save(tx, record, values).await
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
        if !changed.contains(&deal.id) {
            changed.push(deal.id);
            deal.version += 1;
            deal.updated_at = tx.now();
        }
        store::update(tx.db(), account, &deal, Some(quote.id), true).await?;
        events::quote_accepted(tx, &deal, quote);
        let history = store::list_steps(tx.db(), account, deal.id).await?;
        record_change(tx, deal, history);
    }
    Ok(())
}

/// The deal that an accepted quote is for, locked. The event does not say which one that is, so there is none unless the
/// client has exactly one open deal. There is none either if the quote was heard of before.
async fn find_deal_of_quote(tx: &mut Tx<'_>, quote: &AcceptedQuote) -> Result<Option<Record>, Error> {
    let account = tx.account();
    let now = tx.now();
    let Some(client) = quote.client_id else { return Ok(None) };
    // Stored also without a matching deal, so that a repeated delivery has no effect even if a deal matches by then.
    if !store::insert_accepted_quote(tx.db(), account, quote.id, now).await? {
        return Ok(None);
    }
    let mut open = store::find_two_open_locked(tx.db(), account, client).await?;
    Ok(open.pop().filter(|_| open.is_empty()))
}

/// Stores new values of a locked deal, and emits the events of the change. Without a changed value it stores nothing.
async fn save(tx: &mut Tx<'_>, mut record: Record, values: Values) -> Result<Deal, Error> {
    let account = tx.account();
    let now = tx.now();
    let before = record.listing();
    let changes = rules::update(&mut record, values, now);
    if !changes.any {
        tx.unaudited("it is as it was");
        return Ok(record.into());
    }
    store::update(tx.db(), account, &record, None, changes.is_step()).await?;
    tx.relist(&before, &record.listing());
    events::changed(tx, &record, changes);
    let history = store::list_steps(tx.db(), account, record.id).await?;
    Ok(record_change(tx, record, history))
}

/// Records the current deal with its history in the log. Returns the message without the history.
fn record_change(tx: &mut Tx<'_>, record: Record, history: Vec<Step>) -> Deal {
    let id = record.id;
    let deal = Deal::from(record.clone());
    tx.changed(kind::DEAL, id, &DealDetail::from(RecordWithHistory { record, history }));
    deal
}

async fn find_locked(tx: &mut Tx<'_>, id: &str) -> Result<Option<Record>, Error> {
    let account = tx.account();
    match id::parse(id) {
        Some(id) => store::find_locked(tx.db(), account, id).await,
        None => Ok(None),
    }
}

/// The pipelines of the account. An account that was never provisioned gets its defaults first. Pipelines are not
/// locked: a phase that is removed before this transaction ends makes the foreign key refuse the deal, and the
/// transaction runs again.
async fn list_pipelines(tx: &mut Tx<'_>) -> Result<Vec<Pipeline>, Error> {
    let account = tx.account();
    let pipelines = pipeline::store::list(tx.db(), account).await?;
    if !pipelines.is_empty() {
        return Ok(pipelines);
    }
    setup::operations::ensure_defaults(tx).await?;
    pipeline::store::list(tx.db(), account).await
}

/// Refuses the name of a source that does not exist. A deal may keep the name of a source that was removed.
async fn check_source(tx: &mut Tx<'_>, given: &str, current: &str, at: &At<'_>) -> Result<(), Error> {
    let at = at.name("source");
    if given.is_empty() || given == current || tx.faults.cover(&at) {
        return Ok(());
    }
    let account = tx.account();
    if !source::store::exists(tx.db(), account, given).await? {
        let detail = "source must be the name of a deal source; see GET /v1/deal-sources";
        tx.faults.add(&at, Fault::UnknownReference, detail);
    }
    Ok(())
}

/// Shows the deals with these ids, with their histories.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for record in store::list_by_ids(tx.db(), account, &uuids(ids)).await? {
        let history = store::list_steps(tx.db(), account, record.id).await?;
        shown.add(record.id, &DealDetail::from(RecordWithHistory { record, history }));
    }
    Ok(())
}
