//! `Dry-Run`: a transaction that is carried out to its last statement, tells what it has done, and is rolled back.

use chassis_base::Error;
use proto::api::Rehearsal;
use proto::api::rehearsal::{Change, Event};
use uuid::Uuid;

use super::finish::{Kept, finish};
use super::tx::Tx;

/// How many changes and events are named. They travel in a header.
const MAX_NAMED: usize = 100;

#[derive(chassis_derive::FromRow)]
struct Entry {
    kind: String,
    record_id: String,
    change: Option<String>,
    event: Option<String>,
}

impl Tx<'_> {
    /// Ends the transaction like [`end`](Self::end), but rolls it back and says what it has done.
    pub(super) async fn undo(mut self, outcome: Result<Kept, Error>) -> Result<Rehearsal, Error> {
        let rehearsed = async {
            outcome?;
            self.valid()?;
            self.plan.check_precondition(&mut self.connection).await?;
            let ids = finish(&mut self, None).await?;
            Ok(summary(self.entries(&ids).await?))
        };
        let rehearsed = rehearsed.await;
        self.connection.roll_back();
        rehearsed
    }

    async fn entries(&mut self, ids: &[Uuid]) -> Result<Vec<Entry>, Error> {
        let owner = self.filed_under.unwrap_or(self.account.id);
        let sql = "select kind, record_id, change, event from log where account_id = $1 and id = any($2::uuid[]) order by id";
        Ok(sqlx::query_as(sql).bind(owner).bind(ids).fetch_all(&mut *self.connection).await?)
    }
}

fn summary(entries: Vec<Entry>) -> Rehearsal {
    let mut rehearsal = Rehearsal::default();
    for Entry { kind, record_id, change, event } in entries {
        if let Some(event) = event {
            let told = Event { r#type: event, entity_type: kind.clone(), entity_id: record_id.clone() };
            rehearsal.events.push(told);
        }
        if let Some(change) = change {
            rehearsal.changes.push(Change { kind, id: record_id, change });
        }
    }
    rehearsal.cut = rehearsal.changes.len().max(rehearsal.events.len()) > MAX_NAMED;
    rehearsal.changes.truncate(MAX_NAMED);
    rehearsal.events.truncate(MAX_NAMED);
    rehearsal
}
