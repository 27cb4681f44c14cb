//! The writes of links: load, decide, store, record.

use chassis_base::id;
use chassis_data::Tx;
use proto::relations::{ClientLink, ClientLinkInput, RelationType};
use uuid::Uuid;

use super::{Record, rules, store};
use crate::error::Error;

const NOT_FOUND: Error = Error::NotFound("client");
/// The kind of these records in the log.
const AUDIT_KIND: &str = "client_link";

/// Removes the links of a client.
pub(crate) async fn unlink(tx: &mut Tx<'_>, client: Uuid) -> Result<(), Error> {
    let account = tx.account();
    for link in store::delete_of(tx.db(), account, client).await? {
        tx.removed(AUDIT_KIND, log_id(&link));
    }
    Ok(())
}

/// Removes the links of a client, and forgets what they said.
pub(crate) async fn forget_links(tx: &mut Tx<'_>, client: Uuid) -> Result<(), Error> {
    let account = tx.account();
    for link in store::delete_of(tx.db(), account, client).await? {
        tx.forget_history(AUDIT_KIND, &[log_id(&link)]).await?;
        tx.removed(AUDIT_KIND, log_id(&link));
    }
    Ok(())
}

fn log_id(Record { company_id, client_id, .. }: &Record) -> String {
    format!("{company_id}/{client_id}")
}

/// Links a person to the company with this id. A link between the same two clients is replaced.
pub(crate) async fn link(
    tx: &mut Tx<'_>,
    company_id: &str,
    given: ClientLinkInput,
) -> Result<ClientLink, Error> {
    id::ignore_malformed(&mut tx.faults);
    rules::check_given(&given.client_id, &mut tx.faults);
    let company_id = id::parse(company_id);
    let client_id = id::parse(&given.client_id);
    let ids: Vec<Uuid> = company_id.into_iter().chain(client_id).collect();
    let account = tx.account();
    let now = tx.now();
    let clients = store::list_client_types(tx.db(), account, &ids).await?;
    let type_of = |id: Uuid| -> Option<RelationType> {
        clients.iter().find(|client| client.id == id).map(|client| client.kind)
    };

    let Some((company_id, company)) = company_id.and_then(|id| Some((id, type_of(id)?))) else {
        // Faults of the body are reported before an id that does not exist.
        tx.valid()?;
        return Err(NOT_FOUND);
    };
    rules::check_types(company, client_id.and_then(type_of), &mut tx.faults);
    tx.valid()?;
    let client_id = client_id.ok_or(NOT_FOUND)?;
    if clients.iter().any(|client| client.is_anonymized) {
        return Err(Error::Anonymized);
    }

    let record = Record { company_id, client_id, function: given.function, department: given.department };
    store::put(tx.db(), account, &record, now).await?;
    let id = log_id(&record);
    let link = ClientLink::from(record);
    tx.changed(AUDIT_KIND, id, &link);
    Ok(link)
}
