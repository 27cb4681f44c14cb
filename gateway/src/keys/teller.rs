//! Tells automation what a key may do when that has become less: it was narrowed, revoked, or has expired. Told until it has
//! been heard, however often a message is lost.

use std::sync::Arc;
use std::time::Duration;

use chassis::peer::Peer;
use chassis::token;
use chassis::worker::{Due, Job, Next, Worker};
use chassis::{Error, Tx};
use chrono::{DateTime, Utc};
use proto::automation::SetKeyScopesRequest;
use proto::automation::webhook_service_client::WebhookServiceClient;
use sqlx::AssertSqlSafe;
use tonic::Request;
use tonic::metadata::MetadataValue;

use crate::serve::Runtime;

/// Who is told.
const LISTENER: &str = "automation";
/// Who tells.
const ACTOR: &str = "gateway";
const TIMEOUT: Duration = Duration::from_secs(10);
/// Keys of one account in one job.
const BATCH: i64 = 50;

/// The workers that tell of keys and of credentials; none where there is no automation.
pub fn workers(runtime: &Runtime) -> Vec<Worker> {
    let Some(peer) = runtime.peers.get(LISTENER) else { return Vec::new() };
    [("api_key", "api_key work"), ("credential", "credential work")]
        .map(|(table, from)| worker(table, from, peer.clone(), runtime.clone()))
        .into()
}

fn worker(table: &'static str, from: &'static str, peer: Peer, runtime: Runtime) -> Worker {
    let due = Due::new(from, "work.tell_at is not null", "work.tell_at");
    let teller = Arc::new(Teller { table, peer, runtime });
    Worker::new(format!("tell:{table}"), due, move |job| {
        let teller = Arc::clone(&teller);
        async move { teller.run(&job).await }
    })
}

struct Teller {
    table: &'static str,
    peer: Peer,
    runtime: Runtime,
}

/// A key or a credential whose state is to be told.
#[derive(sqlx::FromRow)]
struct Untold {
    public_id: String,
    scopes: Vec<String>,
    expires_at: Option<DateTime<Utc>>,
    revoked_at: Option<DateTime<Utc>>,
    tell_at: DateTime<Utc>,
}

/// What was told, and when.
struct Told {
    table: &'static str,
    now: DateTime<Utc>,
    keys: Vec<Untold>,
}

impl Untold {
    fn has_ended(&self, now: DateTime<Utc>) -> bool {
        self.revoked_at.is_some() || self.expires_at.is_some_and(|end| end <= now)
    }
}

impl Teller {
    async fn run(&self, job: &Job) -> Result<Next, Error> {
        let now = job.now();
        let sql = format!(
            "select public_id, scopes, expires_at, revoked_at, tell_at from {}
             where account_id = $1 and tell_at <= $2 order by tell_at, public_id limit $3",
            self.table
        );
        let mut connection = job.db().read().await?;
        let untold: Vec<Untold> = sqlx::query_as(AssertSqlSafe(sql))
            .bind(job.account_id())
            .bind(now)
            .bind(BATCH)
            .fetch_all(&mut *connection)
            .await?;
        connection.done();
        for key in &untold {
            let scopes = if key.has_ended(now) { Vec::new() } else { key.scopes.clone() };
            self.tell(job, SetKeyScopesRequest { key: key.public_id.clone(), scopes }).await?;
        }
        if untold.is_empty() {
            return Ok(Next::WhenDue);
        }
        let told = Told { table: self.table, now, keys: untold };
        job.write(&told, note).await?;
        Ok(Next::Now)
    }

    async fn tell(&self, job: &Job, message: SetKeyScopesRequest) -> Result<(), Error> {
        let token = self.runtime.tokens.to(self.peer.name()).mint_mesh(job.account(), ACTOR, job.now());
        let token = MetadataValue::try_from(token)
            .map_err(|_| Error::Internal("a token that is not a text".to_owned()))?;
        let mut request = Request::new(message);
        request.set_timeout(TIMEOUT);
        request.metadata_mut().insert(token::HEADER, token);
        let answer = WebhookServiceClient::new(self.peer.channel()).set_key_scopes(request).await;
        answer.map(|_| ()).map_err(|status| Error::Peer(Box::new(status)))
    }
}

/// Notes what was told, unless it has changed meanwhile. One that will expire is told of again then.
async fn note(tx: &mut Tx<'_>, Told { table, now, keys }: &Told) -> Result<(), Error> {
    let account = tx.account();
    tx.unaudited("what automation knows of a key is no change of the key");
    for key in keys {
        let next = key.expires_at.filter(|end| end > now && key.revoked_at.is_none());
        // By what was told too: two changes can be of the same moment.
        let sql = format!(
            "update {table} set tell_at = $4 where account_id = $1 and public_id = $2 and tell_at = $3
                and scopes = $5 and revoked_at is not distinct from $6"
        );
        sqlx::query(AssertSqlSafe(sql))
            .bind(account)
            .bind(&key.public_id)
            .bind(key.tell_at)
            .bind(next)
            .bind(&key.scopes)
            .bind(key.revoked_at)
            .execute(tx.db())
            .await?;
    }
    Ok(())
}
