//! `LogService`: the log over gRPC, for the gateway and internal teams.

use chassis_base::time::timestamp;
use chassis_base::{AccountId, Error};
use chassis_rpc::call::Call;
use proto::log::log_service_server::{LogService, LogServiceServer};
use proto::log::{
    GetLogHeadRequest, GetLogHeadResponse, LogEntry, LogFault, LogHead, ReadLogRequest, ReadLogResponse,
    VerifyLogRequest, VerifyLogResponse,
};
use tonic::{Request, Response, Status};

use super::chain::GENESIS;
use super::read::{self, Entry};
use super::verify::check;
use crate::db::Db;

const DEFAULT_LIMIT: i64 = 100;

/// Serves the log of this database.
pub fn server(db: Db) -> LogServiceServer<Log> {
    LogServiceServer::new(Log { db })
}

pub struct Log {
    db: Db,
}

#[tonic::async_trait]
impl LogService for Log {
    async fn read_log(&self, request: Request<ReadLogRequest>) -> Result<Response<ReadLogResponse>, Status> {
        let (context, input) = Call::open(request)?.valid()?;
        let limit = if input.limit == 0 { DEFAULT_LIMIT } else { input.limit.into() };
        let page = self
            .db
            .read(async |connection| {
                read::page(connection, context.account_id(), input.after, &input.kinds, limit).await
            })
            .await?;
        let entries = page.entries.into_iter().map(LogEntry::try_from).collect::<Result<_, Error>>()?;
        Ok(Response::new(ReadLogResponse { entries, position: page.position, more: page.more }))
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
