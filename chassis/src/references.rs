//! References to records of other services: whether what a request names exists in its account. One call to each
//! service, all of them at the same time. Each service declares which of its records others may refer to, and the same
//! answer serves them all. Background work that goes through all records of another service lists them here too.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use futures::future::try_join_all;
use proto::api::reference_service_client::ReferenceServiceClient;
use proto::api::reference_service_server::{ReferenceService, ReferenceServiceServer};
use proto::api::{
    CreatedReference, Fault, FindReferencesRequest, FindReferencesResponse, ListReferencesRequest,
    ListReferencesResponse, Reference,
};
use proto::{At, Faults};
use sqlx::AssertSqlSafe;
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::account::Account;
use crate::call::{Call, Context};
use crate::db::Db;
use crate::error::Error;
use crate::id;
use crate::outgoing::{Outgoing, away};
use crate::time::{from_timestamp, timestamp};

/// How long background work waits for a list.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many records a list has at most; one that has fewer is the last. As the proto file says.
pub const LISTED: usize = 1000;

/// Records of a service that others may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Referable {
    pub kind: &'static str,
    /// With its schema; has the columns `account_id`, `id` and `created_at`.
    pub table: &'static str,
    /// What of the table is of this kind, as SQL; `true` for all of it.
    pub condition: &'static str,
}

/// What a reference can be to: a kind of record of another service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    pub service: &'static str,
    pub name: &'static str,
}

/// A reference in a request.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    pub kind: Kind,
    /// The place of the id in the request message.
    pub at: &'a At<'a>,
    /// Empty when nothing is referred to.
    pub id: &'a str,
}

/// Looks references up.
#[derive(Clone)]
pub struct References {
    pub(crate) outgoing: Outgoing,
}

impl References {
    /// For a create: adds a fault to the call for each reference to what is not there. To be called before the write; a
    /// repeat that has its answer already does not look at the faults.
    pub async fn check<R>(&self, call: &mut Call<R>, named: &[Named<'_>]) -> Result<(), Error> {
        call.faults.extend(self.missing(&call.context, named).await?);
        Ok(())
    }

    /// A fault for each reference to what is not there. For a change, whose own record has to be found before its
    /// references matter: goes along to the write and is added there. A service that is away makes the call fail with
    /// UNAVAILABLE.
    pub async fn missing(&self, context: &Context, named: &[Named<'_>]) -> Result<Faults, Error> {
        let mut wanted: BTreeMap<&'static str, Vec<Reference>> = BTreeMap::new();
        for Named { kind, id, .. } in named {
            if let Some(id) = id::parse(id) {
                let reference = Reference { kind: kind.name.to_owned(), id: id.to_string() };
                wanted.entry(kind.service).or_default().push(reference);
            }
        }
        let asked = wanted.into_iter().map(|(service, wanted)| self.ask(context, service, wanted));
        let found: HashSet<_> = try_join_all(asked).await?.into_iter().flatten().collect();
        let mut faults = Faults::default();
        for Named { kind, at, id } in named.iter().filter(|named| !named.id.is_empty()) {
            let is_found = |id: Uuid| found.contains(&(kind.service, kind.name.to_owned(), id));
            if !id::parse(id).is_some_and(is_found) {
                let detail = format!("{} must be the id of a {} of this account", at.label(), kind.name);
                faults.add(at, Fault::UnknownReference, detail);
            }
        }
        Ok(faults)
    }

    /// The next records of a kind, in the order of their ids, and when they were created: up to [`LISTED`]. For
    /// background work.
    pub async fn list(
        &self,
        account: &Account,
        kind: Kind,
        after: Uuid,
    ) -> Result<Vec<(Uuid, DateTime<Utc>)>, Error> {
        let request = ListReferencesRequest { kind: kind.name.to_owned(), after: after.to_string() };
        let request = self.outgoing.request(kind.service, account, Instant::now() + PATIENCE, request)?;
        let mut client = ReferenceServiceClient::new(self.outgoing.channel(kind.service)?);
        let listed = client.list_references(request).await;
        let listed = listed.map_err(|status| away(kind.service, "Records", &status))?.into_inner().references;
        let read = |it: CreatedReference| Some((id::parse(&it.id)?, from_timestamp(&it.created_at?)?));
        Ok(listed.into_iter().filter_map(read).collect())
    }

    async fn ask(
        &self,
        context: &Context,
        service: &'static str,
        references: Vec<Reference>,
    ) -> Result<Vec<(&'static str, String, Uuid)>, Error> {
        let request = self.outgoing.request(
            service,
            context.account(),
            context.deadline,
            FindReferencesRequest { references },
        )?;
        let mut client = ReferenceServiceClient::new(self.outgoing.channel(service)?);
        let found = client.find_references(request).await;
        let found = found.map_err(|status| away(service, "References", &status))?.into_inner().references;
        Ok(found.into_iter().filter_map(|it| Some((service, it.kind, id::parse(&it.id)?))).collect())
    }
}

pub(crate) fn server(kinds: &'static [Referable], db: Db) -> ReferenceServiceServer<Answers> {
    ReferenceServiceServer::new(Answers { kinds, db })
}

/// What a service answers others.
pub(crate) struct Answers {
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
        let mut references = Vec::new();
        let mut connection = self.db.read().await?;
        for (Referable { kind, table, condition }, ids) in wanted.into_values() {
            let sql =
                format!("select id from {table} where account_id = $1 and id = any($2) and {condition}");
            let found: Vec<Uuid> = sqlx::query_scalar(AssertSqlSafe(sql))
                .bind(call.context.account_id())
                .bind(ids)
                .fetch_all(&mut *connection)
                .await
                .map_err(Error::from)?;
            let found = found.into_iter();
            references.extend(found.map(|id| Reference { kind: (*kind).to_owned(), id: id.to_string() }));
        }
        connection.done();
        Ok(Response::new(FindReferencesResponse { references }))
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
        // Without a kind there is a fault.
        let Some(Referable { table, condition, .. }) = known else {
            return Ok(Response::new(ListReferencesResponse::default()));
        };
        let sql = format!(
            "select id, created_at from {table} where account_id = $1 and id > $2 and {condition} \
             order by id limit $3"
        );
        let mut connection = self.db.read().await?;
        let found: Vec<(Uuid, DateTime<Utc>)> = sqlx::query_as(AssertSqlSafe(sql))
            .bind(context.account_id())
            .bind(after.unwrap_or_default())
            .bind(i64::try_from(LISTED).unwrap_or(i64::MAX))
            .fetch_all(&mut *connection)
            .await
            .map_err(Error::from)?;
        connection.done();
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
