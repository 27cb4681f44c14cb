//! `LogService`: the log over gRPC, for the gateway and internal teams.

use std::time::Duration;

use chassis_base::time::timestamp;
use chassis_base::{AccountId, Error};
use chassis_rpc::call::Call;
use chassis_rpc::scope;
use futures::stream::BoxStream;
use proto::log::log_service_server::{LogService, LogServiceServer};
use proto::log::{
    BatchGetRecordsRequest, BatchGetRecordsResponse, FollowLogRequest, FollowLogResponse, GetLogHeadRequest,
    GetLogHeadResponse, LogEntry, LogFault, LogHead, LoggedRecord, ReadHistoryRequest, ReadHistoryResponse,
    ReadLogRequest, ReadLogResponse, SnapshotLogRequest, SnapshotLogResponse, VerifyLogRequest,
    VerifyLogResponse,
};
use sqlx::PgConnection;
use tokio::time::{Instant, timeout_at};
use tonic::{Request, Response, Status};

use super::chain::GENESIS;
use super::read::{self, Entry};
use super::snapshot::{self, SharedRecords};
use super::verify::check;
use super::watcher::Watcher;
use crate::db::Db;

const DEFAULT_LIMIT: i64 = 100;
/// How long a stream is silent at most.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How long a stream goes on: the rights of its caller are checked when it begins.
const MAX_STREAM: Duration = Duration::from_mins(5);

/// How long one call compares records.
const MAX_SNAPSHOT: Duration = Duration::from_secs(5);

/// Serves the log of this database, which has these records.
pub fn server(db: Db, records: SharedRecords) -> LogServiceServer<Log> {
    LogServiceServer::new(Log { db, records })
}

pub struct Log {
    db: Db,
    records: SharedRecords,
}

#[tonic::async_trait]
impl LogService for Log {
    async fn read_log(&self, request: Request<ReadLogRequest>) -> Result<Response<ReadLogResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let account = context.account_id();
        Ok(Response::new(read_page(&self.db, account, &input.kinds, input.after, limit(input.limit)).await?))
    }

    type FollowLogStream = BoxStream<'static, Result<FollowLogResponse, Status>>;

    async fn follow_log(
        &self,
        request: Request<FollowLogRequest>,
    ) -> Result<Response<Self::FollowLogStream>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let (db, account) = (self.db.clone(), context.account_id());
        let watcher = Watcher::new(&db, account);
        let FollowLogRequest { after: position, kinds } = input;
        let ends_at = Instant::now() + MAX_STREAM;
        let follower = Follower { db, account, kinds, position, watcher, ends_at };
        Ok(Response::new(Box::pin(futures::stream::try_unfold(follower, Follower::next))))
    }

    async fn read_history(
        &self,
        request: Request<ReadHistoryRequest>,
    ) -> Result<Response<ReadHistoryResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let (account, limit) = (context.account_id(), limit(input.limit));
        let read =
            async |connection: &mut PgConnection| read::history(connection, account, &input, limit).await;
        let (entries, more) = self.db.read(read).await?;
        Ok(Response::new(ReadHistoryResponse { entries: shown(entries)?, more }))
    }

    async fn batch_get_records(
        &self,
        request: Request<BatchGetRecordsRequest>,
    ) -> Result<Response<BatchGetRecordsResponse>, Status> {
        let (context, BatchGetRecordsRequest { kind, record_ids }) = Call::open(request)?.valid()?;
        let account = context.account_id();
        let read =
            async |connection: &mut PgConnection| read::latest(connection, account, &kind, &record_ids).await;
        let found = self.db.read(read).await?;
        let message = found.first().map(|record| record.message.clone()).unwrap_or_default();
        let records = found.into_iter().filter(|record| record.message == message);
        let records = records.map(|record| LoggedRecord { id: record.record_id, image: record.image.into() });
        let records = records.collect();
        Ok(Response::new(BatchGetRecordsResponse { message, records }))
    }

    async fn get_log_head(
        &self,
        request: Request<GetLogHeadRequest>,
    ) -> Result<Response<GetLogHeadResponse>, Status> {
        let (context, _) = Call::open(request)?.valid()?;
        Ok(Response::new(GetLogHeadResponse { head: Some(head(&self.db, context.account_id()).await?) }))
    }

    async fn verify_log(
        &self,
        request: Request<VerifyLogRequest>,
    ) -> Result<Response<VerifyLogResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        Ok(Response::new(verify(&self.db, context.account_id(), &input).await?))
    }

    async fn snapshot_log(
        &self,
        request: Request<SnapshotLogRequest>,
    ) -> Result<Response<SnapshotLogResponse>, Status> {
        let (context, SnapshotLogRequest { restart }) = Call::open(request)?.valid()?;
        let (account, give_up) = (context.account(), Instant::now() + MAX_SNAPSHOT);
        let mut progress = if restart {
            self.db.record(account, &self.records, snapshot::restart).await?
        } else {
            self.db.record(account, &self.records, snapshot::resume).await?
        };
        while !progress.is_done && Instant::now() < give_up {
            progress = self.db.record(account, &self.records, snapshot::resume).await?;
        }
        Ok(Response::new(SnapshotLogResponse { logged: progress.logged, more: !progress.is_done }))
    }
}

fn limit(asked: i32) -> i64 {
    if asked == 0 { DEFAULT_LIMIT } else { asked.into() }
}

fn shown(entries: Vec<Entry>) -> Result<Vec<LogEntry>, Error> {
    entries.into_iter().map(LogEntry::try_from).collect()
}

async fn read_page(
    db: &Db,
    account: AccountId,
    kinds: &[String],
    after: i64,
    limit: i64,
) -> Result<ReadLogResponse, Error> {
    let page = db.read(async |connection| read::page(connection, account, after, kinds, limit).await).await?;
    Ok(ReadLogResponse { entries: shown(page.entries)?, position: page.position, more: page.more })
}

/// A reader that waits for what comes.
struct Follower {
    db: Db,
    account: AccountId,
    kinds: Vec<String>,
    position: i64,
    watcher: Watcher,
    ends_at: Instant,
}

impl Follower {
    /// The changes after its position. Waits if there are none; after a while the answer is empty, which shows that the
    /// stream is alive.
    async fn next(mut self) -> Result<Option<(FollowLogResponse, Self)>, Status> {
        let give_up = Instant::now() + HEARTBEAT;
        loop {
            if Instant::now() >= self.ends_at {
                return Ok(None);
            }
            self.watcher.begin();
            // The stream is read outside the call that began it.
            let read = read_page(&self.db, self.account, &self.kinds, self.position, DEFAULT_LIMIT);
            let page = scope::background(self.account, read).await?;
            self.position = page.position;
            let mut is_overdue = false;
            if page.entries.is_empty() && !page.more {
                match timeout_at(give_up, self.watcher.changed()).await {
                    Ok(true) => {}
                    Ok(false) => return Ok(None),
                    Err(_) => is_overdue = true,
                }
            }
            if is_overdue || !page.entries.is_empty() {
                let answer = FollowLogResponse { entries: page.entries, position: self.position };
                return Ok(Some((answer, self)));
            }
        }
    }
}

/// The end of an account's log.
pub async fn head(db: &Db, account: AccountId) -> Result<LogHead, Error> {
    let head = db.read(async |connection| read::head(connection, account).await).await?;
    Ok(head.map_or_else(
        || LogHead { hash: GENESIS.to_vec().into(), ..LogHead::default() },
        |head| LogHead { position: head.position, hash: head.hash.into(), at: Some(timestamp(head.at)) },
    ))
}

/// Checks a part of an account's log.
pub async fn verify(
    db: &Db,
    account: AccountId,
    input: &VerifyLogRequest,
) -> Result<VerifyLogResponse, Error> {
    let hash = if input.after == 0 { GENESIS.to_vec() } else { input.hash.to_vec() };
    let verified = db.read(async |connection| check(connection, account, input.after, hash).await).await?;
    let fault = verified.fault.map(|(position, detail)| LogFault { position, detail: detail.to_owned() });
    Ok(VerifyLogResponse {
        position: verified.position,
        hash: verified.hash.into(),
        more: verified.more && fault.is_none(),
        fault,
    })
}

impl TryFrom<Entry> for LogEntry {
    type Error = Error;

    fn try_from(entry: Entry) -> Result<Self, Error> {
        let change = entry.change()?;
        let mut shown = Self {
            position: entry.position,
            at: Some(timestamp(entry.at)),
            actor: entry.actor,
            request_id: entry.request_id,
            kind: entry.kind,
            record_id: entry.record_id,
            version: entry.version,
            message: entry.message,
            image: entry.image.unwrap_or_default().into(),
            ..Self::default()
        };
        shown.set_change(change);
        Ok(shown)
    }
}
