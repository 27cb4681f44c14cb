//! Loop protection: how deep in a chain of automation a transaction is. A call carries its depth. Work that starts
//! later without a call (a scan, a subscription's next invoice, a payment) has the depth at which the record that it
//! starts from was created. So records that automation creates are stored with their depth.

use std::collections::HashMap;

use chassis_base::{AccountId, Error};
use sqlx::PgConnection;

use crate::log::event::Emitted;

/// The depth at which each record was created. A record that is missing was not created by automation.
pub(crate) async fn find(
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

/// The depth of each event of a transaction, in order: the transaction's `own` depth or, if records are `considered`
/// and it is greater, the depth at which the event's entity or origin was created.
pub(crate) async fn depths(
    connection: &mut PgConnection,
    account: AccountId,
    events: &[Emitted],
    own: u32,
    considered: bool,
) -> Result<Vec<i32>, Error> {
    let entities: Vec<String> = events.iter().map(|it| it.event.entity_id.to_string()).collect();
    let origins: Vec<String> = events.iter().map(|it| it.origin.to_string()).collect();
    let ids = [entities.as_slice(), origins.as_slice()].concat();
    let known =
        if considered && !ids.is_empty() { find(connection, account, &ids).await? } else { HashMap::new() };
    let depth = |id: &String| known.get(id).copied().unwrap_or_default().max(own);
    let depths = entities.iter().zip(&origins).map(|(entity, origin)| depth(entity).max(depth(origin)));
    Ok(depths.map(|depth| i32::try_from(depth).unwrap_or(i32::MAX)).collect())
}

/// Stores the depth of the records that a transaction of automation creates, which are those without an earlier entry
/// in the log. An existing record keeps its depth; otherwise automation that maintains a record would eventually reach the
/// limit.
pub(crate) async fn remember(
    connection: &mut PgConnection,
    account: AccountId,
    changed: &[String],
    depth: u32,
) -> Result<(), Error> {
    if depth == 0 || changed.is_empty() {
        return Ok(());
    }
    // The release before wrote `audit`.
    let known: Vec<String> = sqlx::query_scalar(
        "select record_id from log where account_id = $1 and record_id = any($2) and change is not null
         union select entity_id from audit where account_id = $1 and entity_id = any($2)",
    )
    .bind(account)
    .bind(changed)
    .fetch_all(&mut *connection)
    .await?;
    let mut made: Vec<&String> = changed.iter().filter(|id| !known.contains(id)).collect();
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
    .execute(connection)
    .await?;
    Ok(())
}
