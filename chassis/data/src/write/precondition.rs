//! `If-Match`: a write is carried out only if its record has a version that the caller knows.
//!
//! The version is looked up twice. Before the operation, so that a caller who is out of date learns that and not what
//! follows from it. And at the end, when the operation holds the lock on the record that it has written, because somebody
//! may have changed the record in between. A write that names no version makes no look-up.

use chassis_base::Error;
use proto::api::{Precondition, Problem};
use sqlx::PgConnection;

use super::plan::Plan;
use crate::origin::Origin;

impl<'a> Plan<'a> {
    pub(super) fn precondition(&self) -> Option<&'a Precondition> {
        match self.origin {
            Origin::Call { context, .. } => context.precondition.as_deref(),
            _ => None,
        }
    }

    /// Fails if the call has a precondition and its record has another version. A record without an entry in the log
    /// has the version before the one that this transaction gives it; one that does not exist is the operation's matter.
    pub(super) async fn check_precondition(&self, connection: &mut PgConnection) -> Result<(), Error> {
        let Some(Precondition { record_id, kinds, versions }) = self.precondition() else { return Ok(()) };
        let latest: Option<(i64, String)> = sqlx::query_as(
            "select version, change from log
             where account_id = $1 and record_id = $2 and kind = any($3::text[]) and change is not null and version > 0
             order by version desc limit 1",
        )
        .bind(self.account.id)
        .bind(record_id)
        .bind(kinds)
        .fetch_optional(connection)
        .await?;
        let present = match latest {
            Some((_, change)) if change == "deleted" => return Ok(()),
            Some((version, _)) => version,
            None => match self.changes.version_of(record_id) {
                // Of a write that changes nothing the version is still the one before.
                Some(version) if versions.contains(&version) => return Ok(()),
                Some(version) => version - 1,
                None => return Ok(()),
            },
        };
        if versions.contains(&present) { Ok(()) } else { Err(changed_meanwhile(present)) }
    }
}

fn changed_meanwhile(present: i64) -> Error {
    let detail = format!(
        "The record has version {present} now, which If-Match does not name. Read it again, and decide again."
    );
    Error::problem(Problem::ChangedMeanwhile, detail).with("version", present.to_string())
}
