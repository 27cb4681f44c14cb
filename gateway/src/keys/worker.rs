//! Brings automation up to date when a key or credential may do less: it was narrowed or revoked, or has expired. A row
//! is due from `tell_at` on, and stays due until automation has answered, so that a lost message is sent again.

use std::sync::Arc;

use chassis_base::Error;
use chassis_data::Tx;
use chassis_rpc::peer::Peer;
use chassis_work::Worker;
use chassis_work::worker::{Due, Job, Next};
use chrono::{DateTime, Utc};
use proto::automation::SetKeyScopesRequest;

use super::store::{self, ScopeTable, UnsyncedScopes};
use super::{automation, rules};
use crate::runtime::Runtime;

/// Keys of one account in one job.
const BATCH: i64 = 50;

/// The workers for keys and for credentials; none when no automation is configured.
pub(crate) fn workers(runtime: &Runtime) -> Vec<Worker> {
    let Some(peer) = automation::peer(runtime) else { return Vec::new() };
    [ScopeTable::ApiKey, ScopeTable::Credential]
        .map(|table| worker(table, peer.clone(), runtime.clone()))
        .into()
}

fn worker(table: ScopeTable, peer: Peer, runtime: Runtime) -> Worker {
    let from = match table {
        ScopeTable::ApiKey => "api_key work",
        ScopeTable::Credential => "credential work",
    };
    let due = Due::new(from, "work.tell_at is not null", "work.tell_at");
    let sync = Arc::new(ScopeSync { table, peer, runtime });
    // The name is stored with the worker's leases.
    Worker::new(format!("tell:{}", table.name()), due, move |job| {
        let sync = Arc::clone(&sync);
        async move { sync.run(&job).await }
    })
}

struct ScopeSync {
    table: ScopeTable,
    peer: Peer,
    runtime: Runtime,
}

/// What automation has accepted, as it was read at `now`.
struct SyncedBatch {
    table: ScopeTable,
    now: DateTime<Utc>,
    keys: Vec<UnsyncedScopes>,
}

impl ScopeSync {
    async fn run(&self, job: &Job) -> Result<Next, Error> {
        let now = job.now();
        let keys = job
            .db()
            .read(async |connection| {
                Ok::<_, Error>(
                    store::list_unsynced(connection, self.table, job.account_id(), now, BATCH).await?,
                )
            })
            .await?;
        if keys.is_empty() {
            return Ok(Next::WhenDue);
        }
        // The calls come before the write: after a crash in between they are repeated, which has no further effect.
        for key in &keys {
            let ended = rules::has_ended(key.revoked_at, key.expires_at, now);
            let scopes = if ended { Vec::new() } else { key.scopes.clone() };
            let message = SetKeyScopesRequest { key: key.public_id.clone(), scopes };
            automation::set_scopes(&self.runtime, &self.peer, job.account(), message).await?;
        }
        job.write(&SyncedBatch { table: self.table, now, keys }, mark_synced).await?;
        Ok(Next::Now)
    }
}

/// A key that is still valid is due again when it expires.
async fn mark_synced(tx: &mut Tx<'_>, batch: &SyncedBatch) -> Result<(), Error> {
    let account = tx.account();
    tx.unaudited("sending scopes to automation does not change the key");
    for key in &batch.keys {
        let next = key.expires_at.filter(|end| *end > batch.now && key.revoked_at.is_none());
        store::mark_synced(tx.db(), batch.table, account, key, next).await?;
    }
    Ok(())
}
