//! Nothing feeds itself: how deep in a chain of automation a transaction is. A call says so itself. What starts later, when
//! nobody calls (a scan, a subscription's next invoice, a payment), is as deep as the making of the record that it starts
//! with; for that the records that automation makes are remembered.

use std::collections::HashMap;
use std::fmt::Display;

use sqlx::PgConnection;
use uuid::Uuid;

use crate::account::AccountId;
use crate::audit::Rows;
use crate::error::Error;
use crate::write::Tx;

impl Tx<'_> {
    /// How many events in a row led to this transaction; see [`Identity::depth`](crate::token::Identity).
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Says that what this transaction does was caused that deep in a chain of automation, or deeper.
    pub fn caused_at(&mut self, depth: u32) {
        self.depth = self.depth.max(depth);
    }

    /// Says that what this transaction does goes on with a record: it is as deep as the making of that.
    pub async fn continues(&mut self, id: impl Display) -> Result<(), Error> {
        let (account, id) = (self.account(), id.to_string());
        let known = find(self.db(), account, std::slice::from_ref(&id)).await?;
        self.caused_at(known.get(&id).copied().unwrap_or_default());
        Ok(())
    }
}

/// The depth of each of the transaction's events, in their order.
pub(crate) async fn depths(tx: &mut Tx<'_>) -> Result<Vec<i32>, Error> {
    let of = |ids: &[Uuid]| ids.iter().map(ToString::to_string).collect::<Vec<String>>();
    let (entities, origins) = (of(&tx.events.entity_ids), of(&tx.events.origins));
    let ids = [entities.as_slice(), origins.as_slice()].concat();
    let (account, own) = (tx.account(), tx.depth);
    // Whoever calls with a key acts by himself. Behind a link there may be a program that was told of the record.
    let asked = tx.caller().is_some_and(|caller| !caller.identity.is_public());
    let known = if asked || ids.is_empty() { HashMap::new() } else { find(tx.db(), account, &ids).await? };
    let depth = |id: &String| known.get(id).copied().unwrap_or_default().max(own);
    let depths = entities.iter().zip(&origins).map(|(entity, origin)| depth(entity).max(depth(origin)));
    Ok(depths.map(|depth| i32::try_from(depth).unwrap_or(i32::MAX)).collect())
}

async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    ids: &[String],
) -> Result<HashMap<String, u32>, Error> {
    let rows: Vec<(String, i32)> =
        sqlx::query_as("select entity_id, depth from caused where account_id = $1 and entity_id = any($2)")
            .bind(account)
            .bind(ids)
            .fetch_all(connection)
            .await?;
    Ok(rows.into_iter().map(|(id, depth)| (id, depth.unsigned_abs())).collect())
}

/// Remembers the records that a transaction of automation makes: those that the audit log has not heard of. One that was
/// there before keeps what it has, so that automation which looks after a record for years does not come to an end.
pub(crate) async fn remember(tx: &mut Tx<'_>, audit: &Rows) -> Result<(), Error> {
    if tx.depth == 0 || audit.is_empty() {
        return Ok(());
    }
    let (account, depth) = (audit.account.unwrap_or_else(|| tx.account()), tx.depth);
    let known: Vec<String> = sqlx::query_scalar(
        "select distinct entity_id from audit where account_id = $1 and entity_id = any($2)",
    )
    .bind(account)
    .bind(&audit.entity_ids)
    .fetch_all(tx.db())
    .await?;
    let mut made: Vec<&String> = audit.entity_ids.iter().filter(|id| !known.contains(id)).collect();
    made.sort_unstable();
    made.dedup();
    if made.is_empty() {
        return Ok(());
    }
    sqlx::query(
        "insert into caused (account_id, entity_id, depth) select $1, entity_id, $3 from unnest($2::text[]) as made (entity_id)
         on conflict (account_id, entity_id) do nothing",
    )
    .bind(account)
    .bind(made)
    .bind(i32::try_from(depth).unwrap_or(i32::MAX))
    .execute(tx.db())
    .await?;
    Ok(())
}
