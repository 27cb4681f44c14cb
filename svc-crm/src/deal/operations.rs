//! What can be done with a deal. The rpc file only takes requests apart and puts answers together.

use chassis::mask::Named;
use chassis::{Tx, id};
use proto::api::Fault;
use proto::crm::{Deal, DealInput, DealMoveInput, DealStatus};
use proto::{At, Faults};

use super::rules::{self, Wanted};
use super::{LIST, Record, Values, events, list_of, store};
use crate::pipeline::{self, Pipeline};
use crate::{Error, provision, source};

const UNKNOWN: Error = Error::NotFound("deal");
/// What the audit log calls it.
const AUDITED: &str = "deal";

pub async fn create(tx: &mut Tx<'_>, given: &DealInput) -> Result<Deal, Error> {
    let at = At::ROOT.name("deal");
    rules::check_fields(Named::All, given, &at, &mut tx.faults);
    let board = board(tx).await?;
    let place = rules::place(&board, Wanted::of(Named::All, given), None, &at, &mut tx.faults);
    check_source(tx, &given.source, "", &at).await?;
    tx.valid()?;
    // Without a place there is a fault.
    let place = place.ok_or_else(|| chassis::Error::Internal("a deal without a place".into()))?;

    let (id, now) = (tx.id(), tx.now());
    let values = rules::create(given, place);
    let status = values.status;
    let record = Record {
        id,
        version: 1,
        values,
        phase_since: now,
        won_at: (status == DealStatus::Won).then_some(now),
        lost_at: (status == DealStatus::Lost).then_some(now),
        created_at: now,
        updated_at: now,
    };
    let account = tx.account();
    store::insert(tx.db(), account, &record).await?;
    tx.count(LIST, now, 1);
    tx.count(list_of(status), now, 1);
    events::created(tx, &record);
    Ok(audited(tx, record))
}

/// Changes what the mask names; without a mask, everything. `missing` are the faults of references to other services.
pub async fn update(
    tx: &mut Tx<'_>,
    id: &str,
    given: &DealInput,
    mask: Option<&prost_types::FieldMask>,
    missing: &Faults,
) -> Result<Deal, Error> {
    id::forgive(&mut tx.faults);
    let at = At::ROOT.name("deal");
    let named = Named::from(mask);
    rules::check_fields(named, given, &at, &mut tx.faults);
    let Some(record) = find_locked(tx, id).await? else {
        // The faults of the body come before an unknown id.
        tx.valid()?;
        return Err(UNKNOWN);
    };
    tx.faults.extend(missing.clone());
    let current = record.values.place;
    let wanted = Wanted::of(named, given);
    let place = if wanted.pipeline.is_empty() && wanted.phase.is_empty() {
        Some(current)
    } else {
        let board = board(tx).await?;
        rules::place(&board, wanted, Some(current), &at, &mut tx.faults)
    };
    if named.has("source") {
        check_source(tx, &given.source, &record.values.source, &at).await?;
    }
    tx.valid()?;
    let values = rules::apply(named, given, place.unwrap_or(current), record.values.clone());
    settle(tx, record, values).await
}

/// To another phase of its pipeline, to another status, or both.
pub async fn shift(tx: &mut Tx<'_>, id: &str, given: &DealMoveInput) -> Result<Deal, Error> {
    id::forgive(&mut tx.faults);
    let at = At::ROOT.name("move");
    let (phase, status) = (given.phase_id.as_str(), given.status());
    if phase.is_empty() && status == DealStatus::Unspecified {
        tx.faults.add(&at, Fault::NoField, "send phase_id, status or both");
    }
    let Some(record) = find_locked(tx, id).await? else {
        tx.valid()?;
        return Err(UNKNOWN);
    };
    let mut values = record.values.clone();
    if !phase.is_empty() {
        let board = board(tx).await?;
        let wanted = Wanted { pipeline: "", phase };
        let place = rules::place(&board, wanted, Some(values.place), &at, &mut tx.faults);
        values.place = place.unwrap_or(values.place);
    }
    tx.valid()?;
    if status != DealStatus::Unspecified {
        values.status = status;
    }
    settle(tx, record, values).await
}

/// Win and lose. A second time changes nothing and tells nobody.
pub async fn close(tx: &mut Tx<'_>, id: &str, status: DealStatus) -> Result<Deal, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let record = find_locked(tx, id).await?.ok_or(UNKNOWN)?;
    let values = Values { status, ..record.values.clone() };
    settle(tx, record, values).await
}

pub async fn delete(tx: &mut Tx<'_>, id: &str) -> Result<Deal, Error> {
    id::forgive(&mut tx.faults);
    tx.valid()?;
    let account = tx.account();
    let id = id::parse(id).ok_or(UNKNOWN)?;
    let record = store::delete(tx.db(), account, id).await?.ok_or(UNKNOWN)?;
    tx.count(LIST, record.created_at, -1);
    tx.count(list_of(record.values.status), record.created_at, -1);
    tx.removed(AUDITED, record.id);
    events::deleted(tx, &record);
    Ok(record.into())
}

/// Gives a deal its new values and tells who wants to know. A change of nothing leaves no trace.
async fn settle(tx: &mut Tx<'_>, mut record: Record, values: Values) -> Result<Deal, Error> {
    let (account, now) = (tx.account(), tx.now());
    let happened = rules::settle(&mut record, values, now);
    if !happened.changed {
        return Ok(record.into());
    }
    store::update(tx.db(), account, &record, None, happened.is_step()).await?;
    if let Some(was) = happened.was {
        tx.count(list_of(was), record.created_at, -1);
        tx.count(list_of(record.values.status), record.created_at, 1);
    }
    events::changed(tx, &record, happened);
    Ok(audited(tx, record))
}

/// A deal that was made or changed, as it is answered and as the audit log keeps it.
pub fn audited(tx: &mut Tx<'_>, record: Record) -> Deal {
    let id = record.id;
    let deal = Deal::from(record);
    tx.changed(AUDITED, id, &deal);
    deal
}

async fn find_locked(tx: &mut Tx<'_>, id: &str) -> Result<Option<Record>, Error> {
    let account = tx.account();
    match id::parse(id) {
        Some(id) => store::find_locked(tx.db(), account, id).await,
        None => Ok(None),
    }
}

/// The account's pipelines; one that was never provisioned gets its defaults first.
async fn board(tx: &mut Tx<'_>) -> Result<Vec<Pipeline>, Error> {
    let account = tx.account();
    let board = pipeline::store::list(tx.db(), account).await?;
    if !board.is_empty() {
        return Ok(board);
    }
    provision::defaults(tx).await?;
    pipeline::store::list(tx.db(), account).await
}

/// A deal may keep the name of a source that is gone, but none is given it anew.
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
