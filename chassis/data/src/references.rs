//! References of other services to records of this one: which of them exist, and which records there are. Each service
//! declares the kinds of records that others may refer to; the rpcs here are the same for all services.

use std::collections::BTreeMap;

use chassis_base::time::timestamp;
use chassis_base::{AccountId, Error, id};
use chassis_rpc::Call;
use chassis_rpc::references::MAX_LISTED;
use chrono::{DateTime, Utc};
use proto::At;
use proto::api::reference_service_server::{ReferenceService, ReferenceServiceServer};
use proto::api::{
    CreatedReference, Fault, FindReferencesRequest, FindReferencesResponse, ListReferencesRequest,
    ListReferencesResponse, Reference,
};
use sqlx::{AssertSqlSafe, PgConnection};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::db::Db;

/// Records of a service that others may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Referable {
    pub kind: &'static str,
    /// The table with its schema. It must have the columns `account_id`, `id` and `created_at`.
    pub table: &'static str,
    /// An SQL condition that selects the rows of this kind; `true` for all rows.
    pub condition: &'static str,
}

pub fn server(kinds: &'static [Referable], db: Db) -> ReferenceServiceServer<Answers> {
    ReferenceServiceServer::new(Answers { kinds, db })
}

/// The reference service of one service.
pub struct Answers {
    kinds: &'static [Referable],
    db: Db,
}

#[tonic::async_trait]
impl ReferenceService for Answers {
    async fn find_references(
        &self,
        request: Request<FindReferencesRequest>,
    ) -> Result<Response<FindReferencesResponse>, Status> {
        let mut call = Call::open(request)?;
        let place = At::ROOT.name("references");
        let mut wanted: BTreeMap<&str, (&Referable, Vec<Uuid>)> = BTreeMap::new();
        for (index, reference) in call.input.references.iter().enumerate() {
            if let Some(known) = self.kinds.iter().find(|known| known.kind == reference.kind) {
                let (_, ids) = wanted.entry(known.kind).or_insert_with(|| (known, Vec::new()));
                ids.extend(id::parse(&reference.id));
            } else {
                let detail = format!("kind must be one of: {}", self.kind_names());
                call.faults.add(&place.index(index).name("kind"), Fault::NotAllowed, detail);
            }
        }
        if !call.faults.is_empty() {
            return Err(Error::from(call.faults).into());
        }
        let account = call.context.account_id();
        let references =
            self.db.read(async |connection| find(connection, account, wanted.into_values()).await);
        Ok(Response::new(FindReferencesResponse { references: references.await? }))
    }

    async fn list_references(
        &self,
        request: Request<ListReferencesRequest>,
    ) -> Result<Response<ListReferencesResponse>, Status> {
        let mut call = Call::open(request)?;
        let known = self.kinds.iter().find(|known| known.kind == call.input.kind);
        if known.is_none() {
            let detail = format!("kind must be one of: {}", self.kind_names());
            call.faults.add(&At::ROOT.name("kind"), Fault::NotAllowed, detail);
        }
        let after = id::parse(&call.input.after);
        if after.is_none() && !call.input.after.is_empty() {
            let detail = "after must be the id that the last answer ended with";
            call.faults.add(&At::ROOT.name("after"), Fault::BadFormat, detail);
        }
        let (context, _) = call.valid()?;
        // An unknown kind has been added as a fault, so `valid` has already returned it.
        let Some(Referable { table, condition, .. }) = known else {
            return Ok(Response::new(ListReferencesResponse::default()));
        };
        let sql = format!(
            "select id, created_at from {table} where account_id = $1 and id > $2 and {condition} \
             order by id limit $3"
        );
        let found = self
            .db
            .read(async |connection| {
                let found: Vec<(Uuid, DateTime<Utc>)> = sqlx::query_as(AssertSqlSafe(sql))
                    .bind(context.account_id())
                    .bind(after.unwrap_or_default())
                    .bind(i64::try_from(MAX_LISTED).unwrap_or(i64::MAX))
                    .fetch_all(&mut *connection)
                    .await
                    .map_err(Error::from)?;
                Ok::<_, Error>(found)
            })
            .await?;
        let reference = |(id, at): (Uuid, DateTime<Utc>)| CreatedReference {
            id: id.to_string(),
            created_at: Some(timestamp(at)),
        };
        Ok(Response::new(ListReferencesResponse { references: found.into_iter().map(reference).collect() }))
    }
}

impl Answers {
    fn kind_names(&self) -> String {
        self.kinds.iter().map(|known| known.kind).collect::<Vec<_>>().join(", ")
    }
}

/// Returns those of the records that exist, with one statement for each kind.
async fn find(
    connection: &mut PgConnection,
    account: AccountId,
    wanted: impl Iterator<Item = (&Referable, Vec<Uuid>)>,
) -> Result<Vec<Reference>, Error> {
    let mut references = Vec::new();
    for (Referable { kind, table, condition }, ids) in wanted {
        let sql = format!("select id from {table} where account_id = $1 and id = any($2) and {condition}");
        let found: Vec<Uuid> = sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(account)
            .bind(ids)
            .fetch_all(&mut *connection)
            .await?;
        let found = found.into_iter();
        references.extend(found.map(|id| Reference { kind: (*kind).to_owned(), id: id.to_string() }));
    }
    Ok(references)
}
