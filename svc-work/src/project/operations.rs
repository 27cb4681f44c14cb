//! What can be done with a project. The rpc file only converts messages.

use chassis::mask::Named;
use chassis::{Tx, id, numbering};
use proto::api::Fault;
use proto::work::{
    CreateProjectRequest, CreateProjectResponse, Project, UpdateProjectRequest, UpdateProjectResponse,
};
use proto::{At, Faults};
use uuid::Uuid;

use super::{LIST, NUMBERS, Record, Values, events, rules, store};
use crate::Error;

pub const UNKNOWN: Error = Error::NotFound("project");

pub async fn create(tx: &mut Tx<'_>, input: &CreateProjectRequest) -> Result<CreateProjectResponse, Error> {
    let given = input.project.clone().unwrap_or_default();
    let values = rules::apply(Named::All, &given, &Values::default(), &mut tx.faults);
    tx.valid()?;
    let record = insert(tx, values, None).await?;
    Ok(CreateProjectResponse { data: Some(record.into()) })
}

/// Stores a new project and tells of it.
pub async fn insert(tx: &mut Tx<'_>, values: Values, quote: Option<Uuid>) -> Result<Record, Error> {
    let (account, id, now) = (tx.account(), tx.id(), tx.now());
    // The last wait of the transaction: the counter stays locked until it ends.
    let number = rules::number(numbering::next(tx.db(), account, NUMBERS).await?);
    let record = Record { id, version: 1, number, values, quote, created_at: now, updated_at: now };
    if !store::insert(tx.db(), account, &record).await? {
        // Run again, which finds the project that someone else has just made of the quote. The number is given back.
        return Err(chassis::Error::Raced.into());
    }
    tx.count(LIST, now, 1);
    events::created(tx, &record);
    tx.changed("project", record.id, &Project::from(record.clone()));
    Ok(record)
}

/// Changes what the mask names; without a mask, everything. A change of nothing leaves no trace. `missing` are the
/// references to what is not there, which matter only when the project itself is.
pub async fn update(
    tx: &mut Tx<'_>,
    (input, missing): &(UpdateProjectRequest, Faults),
) -> Result<UpdateProjectResponse, Error> {
    id::forgive(&mut tx.faults);
    let named = Named::from(input.update_mask.as_ref());
    let given = input.project.clone().unwrap_or_default();
    let account = tx.account();
    let found = match id::parse(&input.id) {
        Some(id) => store::find_locked(tx.db(), account, id).await?,
        None => None,
    };
    let current = found.as_ref().map(|record| record.values.clone()).unwrap_or_default();
    let values = rules::apply(named, &given, &current, &mut tx.faults);
    if found.is_some() {
        tx.faults.extend(missing.clone());
    }
    // The faults of the body come before an unknown id.
    tx.valid()?;
    let mut record = found.ok_or(UNKNOWN)?;
    if values != record.values {
        let from = record.values.status;
        record.values = values;
        record.version += 1;
        record.updated_at = tx.now();
        store::update(tx.db(), account, &record).await?;
        if record.values.status != from {
            events::status_changed(tx, &record, from);
        }
    }
    Ok(UpdateProjectResponse { data: Some(Project::from(record)) })
}

/// Lets projects be made of none of these quotes, which are gone.
pub async fn forget_quotes(tx: &mut Tx<'_>, quotes: &[Uuid]) -> Result<(), Error> {
    if quotes.is_empty() {
        return Ok(());
    }
    let (account, now) = (tx.account(), tx.now());
    for record in store::forget_quotes(tx.db(), account, quotes, now).await? {
        tx.changed("project", record.id, &Project::from(record));
    }
    Ok(())
}

/// The project that something else of this service names at a place of its request; a fault when there is no such one.
pub async fn referred(tx: &mut Tx<'_>, at: &At<'_>, text: &str) -> Result<Option<Uuid>, Error> {
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
