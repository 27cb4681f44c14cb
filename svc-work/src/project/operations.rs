//! Changes of projects.

use chassis_base::id;
use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use chassis_data::log::snapshot::{Shown, uuids};
use proto::api::Fault;
use proto::billing::Document;
use proto::work::{Project, ProjectInput};
use proto::{At, Faults};
use uuid::Uuid;

use super::{NUMBERS, Record, Values, events, rules, store};
use crate::error::Error;

const NOT_FOUND: Error = Error::NotFound("project");
pub(crate) const AUDIT_KIND: &str = "project";

pub(super) async fn create(tx: &mut Tx<'_>, given: &ProjectInput) -> Result<Record, Error> {
    let values = rules::apply(UpdateMask::All, given, &Values::default(), &mut tx.faults);
    tx.valid()?;
    insert(tx, values, None).await
}

/// Creates the project of an accepted quote, or finds the one that was created before: any number of calls leads to one
/// project. `quote` is what billing has answered for `quote_id`.
pub(super) async fn create_from_quote(
    tx: &mut Tx<'_>,
    quote_id: &str,
    quote: Option<&Document>,
) -> Result<Record, Error> {
    let found = quote.and_then(|quote| Some((quote, id::parse(&quote.id)?)));
    if found.is_none() && !quote_id.is_empty() {
        let detail = "quote_id must be the id of a quote of this account";
        tx.faults.add(&At::ROOT.name("quote_id"), Fault::UnknownReference, detail);
    }
    tx.valid()?;
    let (quote, quote_id) = found.ok_or(Error::NotFound("quote"))?;
    let account = tx.account();
    match store::find_by_quote(tx.db(), account, quote_id).await? {
        Some(record) => {
            // It is not locked, so by the end of this transaction it may no longer be what is answered here.
            tx.unaudited("the project of the quote exists and is unchanged");
            Ok(record)
        }
        None => insert(tx, rules::from_quote(quote)?, Some(quote_id)).await,
    }
}

/// Stores a new project with the next number, and emits its events.
async fn insert(tx: &mut Tx<'_>, values: Values, quote: Option<Uuid>) -> Result<Record, Error> {
    let account = tx.account();
    let now = tx.now();
    let id = tx.id();
    // The row of the counter stays locked until the transaction ends, and every other create waits for it. So it is the
    // last row that this locks. A rollback also undoes the increment, so that numbers have no gaps.
    let number = rules::number(tx.next_number(NUMBERS).await?);
    let record = Record { id, version: 1, number, values, quote, created_at: now, updated_at: now };
    if !store::insert(tx.db(), account, &record).await? {
        // Another transaction has just created the project of this quote. Running again finds it.
        return Err(chassis_base::Error::Raced.into());
    }
    tx.list(&record.listing());
    tx.refers_to(record.values.client);
    events::created(tx, &record);
    record_change(tx, &record);
    Ok(record)
}

/// Changes what the mask names; without a mask, everything. An update that changes no value stores nothing. `missing`
/// are the faults of references to other services, which count only when the project itself exists.
pub(super) async fn update(
    tx: &mut Tx<'_>,
    id: &str,
    given: &ProjectInput,
    named: UpdateMask<'_>,
    missing: &Faults,
) -> Result<Record, Error> {
    id::ignore_malformed(&mut tx.faults);
    let account = tx.account();
    let found = match id::parse(id) {
        Some(id) => store::find_locked(tx.db(), account, id).await?,
        None => None,
    };
    let current = found.as_ref().map(|record| record.values.clone()).unwrap_or_default();
    let values = rules::apply(named, given, &current, &mut tx.faults);
    if found.is_some() {
        tx.faults.extend(missing.clone());
    }
    // Faults of the body are reported before an id that does not exist.
    tx.valid()?;
    let mut record = found.ok_or(NOT_FOUND)?;
    if values == record.values {
        tx.unaudited("it is as it was");
        return Ok(record);
    }
    let (before, previous_status) = (record.listing(), record.values.status);
    if values.client != record.values.client {
        tx.refers_to(values.client);
    }
    record.values = values;
    record.version += 1;
    record.updated_at = tx.now();
    store::update(tx.db(), account, &record).await?;
    tx.relist(&before, &record.listing());
    if record.values.status != previous_status {
        events::status_changed(tx, &record, previous_status);
    }
    Ok(record)
}

/// Removes the references of projects to quotes that were deleted.
pub(crate) async fn clear_quotes(tx: &mut Tx<'_>, quotes: &[Uuid]) -> Result<(), Error> {
    if quotes.is_empty() {
        return Ok(());
    }
    let account = tx.account();
    let now = tx.now();
    for record in store::clear_quotes(tx.db(), account, quotes, now).await? {
        record_change(tx, &record);
    }
    Ok(())
}

/// The project that another record of this service refers to in the field `at`. `None` for an empty text; a fault when
/// the project does not exist.
pub(crate) async fn check_reference(tx: &mut Tx<'_>, at: &At<'_>, text: &str) -> Result<Option<Uuid>, Error> {
    let account = tx.account();
    let found = match id::parse(text) {
        Some(id) if store::exists(tx.db(), account, id).await? => Some(id),
        _ => None,
    };
    if found.is_none() && !text.is_empty() {
        let detail = format!("{} must be the id of a project of this account", at.label());
        tx.faults.add(at, Fault::UnknownReference, detail);
    }
    Ok(found)
}

/// Records the current project in the log.
fn record_change(tx: &mut Tx<'_>, record: &Record) {
    tx.changed(AUDIT_KIND, record.id, &Project::from(record.clone()));
}

/// Shows the projects with these ids.
pub(crate) async fn show(tx: &mut Tx<'_>, ids: &[String], shown: &mut Shown) -> Result<(), Error> {
    let account = tx.account();
    for id in uuids(ids) {
        if let Some(record) = store::find(tx.db(), account, id).await? {
            shown.add(id, &Project::from(record));
        }
    }
    Ok(())
}
