//! Turning a quote into a project, which another service does.

use chassis_base::id;
use chassis_data::Tx;
use serde_json::json;

use super::{OperationContext, log_changed, record_history};
use crate::document::{Kind, store};
use crate::error::Error;

/// Stores the number of the project with the quote. The same number again changes nothing.
pub(crate) async fn set_project(
    tx: &mut Tx<'_>,
    context: &OperationContext,
    id: &str,
    project_number: &str,
) -> Result<(), Error> {
    id::ignore_malformed(&mut tx.faults);
    tx.valid()?;
    let (account, now) = (tx.account(), tx.now());
    let id = id::parse(id).ok_or(Error::NotFound(Kind::Quote.name()))?;
    if store::set_project(tx.db(), account, id, project_number, now).await? {
        record_history(tx, id, "converted", json!({"project_number": project_number}), None).await?;
        return log_changed(tx, &context.links, &[id]).await;
    }
    let found = store::find(tx.db(), account, Kind::Quote, id).await?;
    let quote = found.ok_or(Error::NotFound(Kind::Quote.name()))?.record;
    match quote.project_number {
        Some(number) if number != project_number => Err(Error::HasProject(number)),
        _ => Ok(()),
    }
}
