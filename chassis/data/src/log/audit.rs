//! Reads the log as an audit log over gRPC: the changes of records, with the record before and after.

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

use super::compact::first_id;
use super::json;
use crate::db::Db;

const DEFAULT_SIZE: i64 = 50;

/// Serves the audit log of this database.
pub fn server(db: Db) -> AuditServiceServer<Audit> {
    AuditServiceServer::new(Audit { db })
}

pub struct Audit {
    db: Db,
}

#[derive(chassis_derive::FromRow)]
struct Entry {
    id: Uuid,
    at: DateTime<Utc>,
    actor: String,
    request_id: String,
    method: String,
    kind: String,
    record_id: String,
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
    let one = if wanted.entity_id.is_empty() { "$5 = ''" } else { "entry.record_id = $5" };
    // The release before wrote `audit`, whose entries are moved to the log by and by; see `compact`. One of those whose
    // image equals the previous one is not a change, so it is left out. Both tables are ordered, and
    // types and collations are those of the columns, so that they are merged by their keys instead of read as a whole.
    let sql = format!(
        "select entry.id, entry.at, actor, request_id, method, entry.kind, entry.record_id, entry.message,
            case when forgotten.version is null or entry.version > forgotten.version then entry.image end as image,
            before.message as message_before,
            case when forgotten.version is null or before.version > forgotten.version then before.image end as image_before
         from (
            (select id, at, actor, request_id, method, kind, record_id, message, image, version from log
             where account_id = $1 and change is not null order by id desc)
            union all
            (select id, at, actor, request_id, method, entity_type collate \"C\", entity_id collate \"C\", message, image,
                null::bigint
             from audit where account_id = $1 order by id desc)) entry
         left join lateral (
            select * from (
                (select id, message, image, version from log earlier
                 where earlier.account_id = $1 and earlier.record_id = entry.record_id and earlier.kind = entry.kind
                    and earlier.change is not null and earlier.version < entry.version
                 order by earlier.version desc limit 1)
                union all
                (select id, message, image, null::bigint from audit earlier
                 where earlier.account_id = $1 and earlier.entity_id = entry.record_id collate \"default\"
                    and earlier.entity_type = entry.kind collate \"default\" and earlier.id < entry.id
                 order by earlier.id desc limit 1)) earlier
            order by id desc limit 1) before on true
         left join forgotten_history forgotten on forgotten.account_id = $1
            and forgotten.record_id = entry.record_id and forgotten.kind = entry.kind
         where entry.id < $2 and entry.id >= $3 and ($4 = '' or entry.kind = $4) and {one} and ($6 = '' or actor = $6)
            and (entry.version > 0 or before.id is null or before.image is distinct from entry.image)
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
            entity_type: entry.kind,
            entity_id: entry.record_id,
            before: json::text(&entry.message_before.unwrap_or_default(), entry.image_before.as_deref()),
            after: json::text(&entry.message, entry.image.as_deref()),
        }
    }
}
