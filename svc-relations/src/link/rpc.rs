//! The link rpcs of `ClientService`.

use chassis::{AccountId, Db, Tx, id};
use proto::relations::{ClientLink, LinkClientRequest, LinkClientResponse, RelationType};
use uuid::Uuid;

use super::store::Row;
use super::{rules, store};
use crate::Error;

const UNKNOWN: Error = Error::NotFound("client");

pub async fn link(tx: &mut Tx<'_>, input: &LinkClientRequest) -> Result<LinkClientResponse, Error> {
    let given = input.link.clone().unwrap_or_default();
    id::forgive(&mut tx.faults);
    rules::check_given(&given.client_id, &mut tx.faults);
    let (company_id, client_id) = (id::parse(&input.id), id::parse(&given.client_id));
    let ids: Vec<Uuid> = company_id.into_iter().chain(client_id).collect();
    let (account, now) = (tx.account(), tx.now());
    let types = store::types_of_clients(tx.db(), account, &ids).await?;
    let type_of = |id: Uuid| -> Option<RelationType> {
        types.iter().find(|(known, _)| *known == id).map(|(_, kind)| *kind)
    };

    let Some((company_id, company)) = company_id.and_then(|id| Some((id, type_of(id)?))) else {
        tx.valid()?;
        return Err(UNKNOWN);
    };
    rules::check_kinds(company, client_id.and_then(type_of), &mut tx.faults);
    tx.valid()?;
    let client_id = client_id.ok_or(UNKNOWN)?;

    let row = Row { company_id, client_id, function: given.function, department: given.department };
    store::put(tx.db(), account, &row, now).await?;
    let link = ClientLink::from(row);
    tx.changed("client_link", format!("{company_id}/{client_id}"), &link);
    Ok(LinkClientResponse { data: Some(link) })
}

pub async fn list(db: &Db, account: AccountId, id: &str) -> Result<Vec<ClientLink>, Error> {
    let id = id::parse(id).ok_or(UNKNOWN)?;
    let mut connection = db.read().await?;
    if store::types_of_clients(&mut connection, account, &[id]).await?.is_empty() {
        return Err(UNKNOWN);
    }
    let links = store::list(&mut connection, account, id).await?;
    Ok(links.into_iter().map(ClientLink::from).collect())
}

impl From<Row> for ClientLink {
    fn from(row: Row) -> Self {
        Self {
            company_id: row.company_id.to_string(),
            client_id: row.client_id.to_string(),
            function: row.function,
            department: row.department,
        }
    }
}
