//! References between services. Of other services to records of this one: which of them exist, and which records there are.
//! And the other way: how many records of this service refer to a record of another one. Each service declares the kinds of
//! records that others may refer to, and those that refer to others; the rpcs here are the same for all services.

use std::collections::BTreeMap;

use chassis_base::time::timestamp;
use chassis_base::{AccountId, Error, id};
use chassis_rpc::Call;
use chassis_rpc::references::MAX_LISTED;
use chrono::{DateTime, Utc};
use proto::At;
use proto::api::reference_service_server::{ReferenceService, ReferenceServiceServer};
use proto::api::{
    CountReferrersRequest, CountReferrersResponse, CreatedReference, EndWithdrawalRequest,
    EndWithdrawalResponse, Fault, FindReferencesRequest, FindReferencesResponse, ListReferencesRequest,
    ListReferencesResponse, Reference, Referrers,
};
use sqlx::{AssertSqlSafe, PgConnection};
use tonic::{Request, Response, Status};
use uuid::Uuid;

use crate::db::Db;
use crate::withdrawal::Withdrawals;
use crate::write::Tx;

/// How many referrers of a kind are named.
const MAX_NAMED: i64 = 5;

/// Records of a service that others may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Referable {
    pub kind: &'static str,
    /// The table with its schema. It must have the columns `account_id`, `id` and `created_at`.
    pub table: &'static str,
    /// An SQL condition that selects the rows of this kind; `true` for all rows.
    pub condition: &'static str,
}

/// Records of a service that refer to those of another one. A write that sets the reference says so with
/// [`Plan::refers_to`](crate::Plan::refers_to). All texts are SQL of the program, except the kinds.
#[derive(Clone, Copy, Debug)]
pub struct Referrer {
    pub kind: &'static str,
    /// The kind of the records that they refer to.
    pub to: &'static str,
    /// The table with its schema. An index begins with `account_id` and `column`.
    pub table: &'static str,
    /// The column that is shown as the id.
    pub id: &'static str,
    /// The column with the id of the other record.
    pub column: &'static str,
    /// A condition that selects the rows of this kind; `true` for all rows.
    pub condition: &'static str,
    /// A condition that selects those of them that need the other record as it is now; `false` for none.
    pub live: &'static str,
}

pub fn server(
    kinds: &'static [Referable],
    referrers: &'static [Referrer],
    db: Db,
) -> ReferenceServiceServer<Answers> {
    ReferenceServiceServer::new(Answers { kinds, referrers, db })
}

/// The reference service of one service.
pub struct Answers {
    kinds: &'static [Referable],
    referrers: &'static [Referrer],
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

    async fn count_referrers(
        &self,
        request: Request<CountReferrersRequest>,
    ) -> Result<Response<CountReferrersResponse>, Status> {
        let mut call = Call::open(request)?;
        let asked = Asked::read(&mut call, self.referrers);
        if !call.faults.is_empty() {
            return Err(Error::from(call.faults).into());
        }
        if asked.withdrawal.is_some() {
            return self.db.write_with(call, asked, withdraw).await;
        }
        let account = call.context.account_id();
        let referrers = self.db.read(async |connection| count(connection, account, &asked).await);
        Ok(Response::new(CountReferrersResponse { referrers: referrers.await? }))
    }

    async fn end_withdrawal(
        &self,
        request: Request<EndWithdrawalRequest>,
    ) -> Result<Response<EndWithdrawalResponse>, Status> {
        self.db.write(Call::open(request)?, end_withdrawal).await
    }
}

/// What a service asks about one of its records.
struct Asked {
    /// Who can refer to it.
    referrers: Vec<Referrer>,
    record: Uuid,
    only_live: bool,
    withdrawal: Option<Uuid>,
}

impl Asked {
    fn read(call: &mut Call<CountReferrersRequest>, known: &[Referrer]) -> Self {
        let Call { input, faults, .. } = call;
        let Reference { kind, id } = input.reference.clone().unwrap_or_default();
        let withdrawal = id::parse(&input.withdrawal);
        if withdrawal.is_none() && !input.withdrawal.is_empty() {
            faults.add(&At::ROOT.name("withdrawal"), Fault::BadFormat, "withdrawal must be a UUID");
        }
        let record = id::parse(&id);
        if record.is_none() {
            let at = At::ROOT.name("reference");
            faults.add(&at.name("id"), Fault::BadFormat, "reference.id must be a UUID");
        }
        let referrers = known.iter().filter(|referrer| referrer.to == kind).copied().collect();
        Self { referrers, record: record.unwrap_or_default(), only_live: input.only_live, withdrawal }
    }
}

/// Counts who refers to a record, and withdraws it if nobody does. What is counted cannot change before this has committed.
async fn withdraw(
    tx: &mut Tx<'_>,
    _: &CountReferrersRequest,
    asked: &Asked,
) -> Result<CountReferrersResponse, Error> {
    tx.unaudited("nothing is stored of a withdrawal when it has ended");
    let (account, now) = (tx.account(), tx.now());
    let mut withdrawals = Withdrawals::lock(tx.db(), account, now).await?;
    let referrers = count(tx.db(), account, asked).await?;
    if let (Some(withdrawal), true) = (asked.withdrawal, referrers.is_empty()) {
        withdrawals.begin(asked.record, withdrawal, now);
        withdrawals.store(tx.db(), account, now).await?;
    }
    Ok(CountReferrersResponse { referrers })
}

async fn end_withdrawal(
    tx: &mut Tx<'_>,
    input: &EndWithdrawalRequest,
) -> Result<EndWithdrawalResponse, Error> {
    tx.valid()?;
    tx.unaudited("nothing is stored of a withdrawal when it has ended");
    let (account, now) = (tx.account(), tx.now());
    let mut withdrawals = Withdrawals::lock(tx.db(), account, now).await?;
    if let Some(withdrawal) = id::parse(&input.withdrawal) {
        withdrawals.end(withdrawal);
    }
    withdrawals.store(tx.db(), account, now).await?;
    Ok(EndWithdrawalResponse {})
}

/// The kinds that refer to a record, with one statement for each.
async fn count(
    connection: &mut PgConnection,
    account: AccountId,
    asked: &Asked,
) -> Result<Vec<Referrers>, Error> {
    let mut counted = Vec::new();
    for Referrer { kind, table, id, column, condition, live, .. } in &asked.referrers {
        let live = if asked.only_live { live } else { "true" };
        let rows = format!("from {table} where account_id = $1 and {column} = $2 and {condition} and {live}");
        let sql = format!("select (select count(*) {rows}), array(select {id}::text {rows} limit $3)");
        let (count, ids): (i64, Vec<String>) = sqlx::query_as(AssertSqlSafe(sql))
            .bind(account)
            .bind(asked.record)
            .bind(MAX_NAMED)
            .fetch_one(&mut *connection)
            .await?;
        if count > 0 {
            counted.push(Referrers { kind: (*kind).to_owned(), count, ids });
        }
    }
    Ok(counted)
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
