//! Reads the audit log over gRPC.

use chassis_base::time::{from_timestamp, timestamp};
use chassis_base::{AccountId, Error, id};
use chassis_rpc::call::Call;
use chrono::{DateTime, Utc};
use prost_types::Timestamp;
use proto::At;
use proto::api::Fault;
use proto::audit::audit_service_server::{AuditService, AuditServiceServer};
use proto::audit::{AuditEntry, ListAuditRequest, ListAuditResponse};
use sqlx::{AssertSqlSafe, PgConnection};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use super::json;
use super::purge::first_id;
use crate::db::Db;

const DEFAULT_SIZE: i64 = 50;

/// Serves the audit log of this database.
pub fn server(db: Db) -> AuditServiceServer<Audit> {
    AuditServiceServer::new(Audit { db })
}

pub struct Audit {
    db: Db,
}

#[derive(sqlx::FromRow)]
struct Entry {
    id: Uuid,
    at: DateTime<Utc>,
    actor: String,
    request_id: String,
    method: String,
    entity_type: String,
    entity_id: String,
    message: String,
    image: Option<Vec<u8>>,
    message_before: Option<String>,
    image_before: Option<Vec<u8>>,
}

#[tonic::async_trait]
impl AuditService for Audit {
    async fn list_audit(
        &self,
        request: Request<ListAuditRequest>,
    ) -> Result<Response<ListAuditResponse>, Status> {
        let mut call = Call::open(request)?;
        let token = &call.input.page_token;
        if !token.is_empty() && id::parse(token).is_none() {
            let detail = "page_token must be the next_page_token of the page before";
            call.faults.add(&At::ROOT.name("page_token"), Fault::BadFormat, detail);
        }
        let (context, wanted) = call.valid()?;
        let size = if wanted.page_size == 0 { DEFAULT_SIZE } else { wanted.page_size.into() };
        // One entry more than requested shows whether there is another page.
        let mut found = self
            .db
            .read(async |connection| list(connection, context.account_id(), &wanted, size + 1).await)
            .await?;
        let more = i64::try_from(found.len()).is_ok_and(|count| count > size);
        found.truncate(usize::try_from(size).unwrap_or_default());
        let last = found.last().filter(|_| more);
        let next_page_token = last.map(|entry| entry.id.to_string()).unwrap_or_default();
        let entries = found.into_iter().map(AuditEntry::from).collect();
        Ok(Response::new(ListAuditResponse { entries, next_page_token }))
    }
}

async fn list(
    connection: &mut PgConnection,
    account: AccountId,
    wanted: &ListAuditRequest,
    limit: i64,
) -> Result<Vec<Entry>, Error> {
    let bound = |time: Option<&Timestamp>| time.and_then(from_timestamp).map(first_id);
    let token = id::parse(&wanted.page_token);
    let before = token.into_iter().chain(bound(wanted.to.as_ref())).min().unwrap_or(Uuid::max());
    // The filter by record is a separate statement, so that the planner uses the index on the record.
    let one = if wanted.entity_id.is_empty() { "$5 = ''" } else { "entry.entity_id = $5" };
    // An entry whose image equals the previous one is not a change, so it is left out.
    let sql = format!(
        "select entry.id, at, actor, request_id, method, entity_type, entity_id, entry.message, entry.image,
            before.message as message_before, before.image as image_before
         from audit entry left join lateral (
            select id, message, image from audit earlier
            where earlier.account_id = $1 and earlier.entity_id = entry.entity_id
                and earlier.entity_type = entry.entity_type and earlier.id < entry.id
            order by earlier.id desc limit 1) before on true
         where entry.account_id = $1 and entry.id < $2 and entry.id >= $3 and ($4 = '' or entity_type = $4) and {one}
            and ($6 = '' or actor = $6) and (before.id is null or before.image is distinct from entry.image)
         order by entry.id desc limit $7"
    );
    let found = sqlx::query_as(AssertSqlSafe(sql))
        .bind(account)
        .bind(before)
        .bind(bound(wanted.from.as_ref()).unwrap_or_default())
        .bind(&wanted.entity_type)
        .bind(&wanted.entity_id)
        .bind(&wanted.actor)
        .bind(limit)
        .fetch_all(connection)
        .await?;
    Ok(found)
}

impl From<Entry> for AuditEntry {
    fn from(entry: Entry) -> Self {
        Self {
            id: entry.id.to_string(),
            at: Some(timestamp(entry.at)),
            actor: entry.actor,
            request_id: entry.request_id,
            method: entry.method,
            entity_type: entry.entity_type,
            entity_id: entry.entity_id,
            before: json::text(&entry.message_before.unwrap_or_default(), entry.image_before.as_deref()),
            after: json::text(&entry.message, entry.image.as_deref()),
        }
    }
}
