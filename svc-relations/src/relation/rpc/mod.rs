//! `ClientService` and `SupplierService`, and the reads that both have: a page of a list, and one record.

pub(crate) mod clients;
pub(crate) mod suppliers;

use chassis_base::paging::Page;
use chassis_base::{AccountId, formats, id};
use chassis_data::Db;
use proto::api::{Fault, PageMeta};
use proto::relations::Relation;
use proto::{At, Faults};

use super::Role;
use super::store::{self, Filter};
use crate::error::Error;

async fn list(
    db: &Db,
    account: AccountId,
    role: Role,
    filter: &Filter<'_>,
    page: Page,
) -> Result<(Vec<Relation>, PageMeta), Error> {
    let (records, meta) =
        db.read(async |connection| store::list(connection, account, role, filter, page).await).await?;
    Ok((records.into_iter().map(Relation::from).collect(), meta))
}

/// The country that a list is restricted to, as it is stored; a fault for a text that is not the code of one.
fn country(given: &str, faults: &mut Faults) -> Option<String> {
    if given.is_empty() {
        return None;
    }
    let code = formats::country::normalise(given);
    if code.is_none() {
        let detail = "country must be an ISO 3166 alpha-2 code, for example NL";
        faults.add(&At::ROOT.name("country"), Fault::BadCountry, detail);
    }
    code
}

async fn get(db: &Db, account: AccountId, role: Role, id: &str) -> Result<Relation, Error> {
    let not_found = || Error::NotFound(role.name());
    let id = id::parse(id).ok_or_else(not_found)?;
    let found = db.read(async |connection| store::find(connection, account, role, id).await).await?;
    found.map(Relation::from).ok_or_else(not_found)
}
