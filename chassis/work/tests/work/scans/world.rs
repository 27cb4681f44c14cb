//! A service with scans of things, in as many replicas as a test needs, and helpers for common steps.

use std::collections::HashMap;
use std::sync::Arc;

use chassis_base::{Account, Clock, Error};
use chassis_data::references::Referable;
use chassis_data::{Db, Event, Tx};
use chassis_rpc::references::{Kind, References};
use chassis_service::{Runtime, Service};
use chassis_testing::{Started, TestCaller, TestDatabase, eventually};
use chassis_work::scan::{Describe, Emission, ExternalRecords, Findings, Scan, Threshold};
use chrono::{DateTime, TimeDelta, Utc};
use proto::api::ProvisionAccountRequest;
use proto::api::provisioning_service_client::ProvisioningServiceClient;
use proto::scans::scan_service_client::ScanServiceClient;
use proto::scans::{RunScansRequest, SetThresholdRequest};
use serde_json::{Value, json};
use sqlx::migrate::Migrator;
use tonic::Status;
use tonic::service::RoutesBuilder;
use uuid::Uuid;

static NO_MIGRATIONS: Migrator = Migrator::DEFAULT;

/// A service with things that stand still, things that another service reports as alone, things with a date, and things
/// that end soon. The other service is a second instance of this one.
struct Things {
    db: Db,
    references: References,
}

const LONELY: Kind = Kind { service: "bare", name: "lonely" };

#[tonic::async_trait]
impl Service for Things {
    const NAME: &'static str = "bare";
    const ABOUT: &'static str = "For tests";

    fn migrations() -> &'static Migrator {
        &NO_MIGRATIONS
    }

    async fn new(runtime: &Runtime) -> Result<Self, String> {
        Ok(Self { db: runtime.db.clone(), references: runtime.references() })
    }

    fn routes(self: &Arc<Self>, _: &mut RoutesBuilder) {}

    fn referables() -> &'static [Referable] {
        &[Referable { kind: LONELY.name, table: "bare.thing", condition: "kind = 'alone'" }]
    }

    fn scans(self: &Arc<Self>) -> Vec<Scan> {
        let describe = Arc::new(Company { db: self.db.clone() });
        let still = Scan {
            event: "thing.still",
            threshold: Threshold::Days(3),
            causes: "select id as entity_id, (extract(epoch from since) * 1000)::bigint::text as cause
                     from bare.thing where account_id = $1 and kind = 'still' and since <= $2",
            lock: "select 1 from bare.thing
                   where account_id = $1 and id = any($2) and $3::text[] is not null order by id for update",
            kept: "exists (select from bare.thing t
                   where t.account_id = reported.account_id and t.id = reported.entity_id
                   and (extract(epoch from t.since) * 1000)::bigint::text = reported.cause)",
            external: None,
            emit,
        };
        let alone = Scan {
            event: "thing.alone",
            threshold: Threshold::Hours(2),
            causes: "select listed.id as entity_id, '' as cause
                     from unnest($5::uuid[], $6::timestamptz[]) as listed (id, created_at) where created_at <= $2",
            kept: "true",
            external: Some(ExternalRecords {
                references: self.references.clone(),
                kind: LONELY,
                is_returning: false,
                describe,
            }),
            ..still.clone()
        };
        let dated = Scan {
            event: "thing.dated",
            threshold: Threshold::None,
            causes: "select id as entity_id, '' as cause
                     from bare.thing where account_id = $1 and kind = 'dated' and since::date < $3",
            external: None,
            ..alone.clone()
        };
        let ending = Scan {
            event: "thing.ending",
            threshold: Threshold::DaysBefore(1),
            causes: "select id as entity_id, '' as cause from bare.thing
                     where account_id = $1 and kind = 'ending' and since::date between $3 and $3 + $4",
            ..dated.clone()
        };
        // The scan that asks another service comes first, to show that its failure does not stop the next scans.
        vec![alone, still, dated, ending]
    }
}

struct Company {
    db: Db,
}

#[tonic::async_trait]
impl Describe for Company {
    /// The description by the other service: a thing with company is not alone, and a broken thing causes an error.
    async fn describe(&self, account: &Account, ids: &[Uuid]) -> Result<HashMap<Uuid, Value>, Error> {
        let mut connection = self.db.acquire().await?;
        let said: Vec<(Uuid, String)> =
            sqlx::query_as("select id, company from bare.thing where account_id = $1 and id = any($2)")
                .bind(account.id)
                .bind(ids)
                .fetch_all(&mut *connection)
                .await?;
        if said.iter().any(|(_, company)| company == "broken") {
            return Err(Error::Peer(Box::new(Status::unavailable("away"))));
        }
        let alone = said.into_iter().filter(|(_, company)| company.is_empty());
        Ok(alone.map(|(id, _)| (id, json!({"name": "x"}))).collect())
    }
}

fn emit<'a>(tx: &'a mut Tx<'_>, findings: &'a Findings) -> Emission<'a> {
    Box::pin(async move {
        let account = tx.account();
        let raised: Vec<(Uuid, i64)> = sqlx::query_as(
            "update bare.thing set version = version + 1 where account_id = $1 and id = any($2) returning id, version",
        )
        .bind(account)
        .bind(findings.entities())
        .fetch_all(tx.db())
        .await?;
        for (entity_id, version) in raised {
            let mut data = findings.about(entity_id).cloned().unwrap_or(json!({}));
            if let (Value::Object(data), Value::Object(waited)) = (&mut data, findings.threshold_data()) {
                data.extend(waited);
            }
            let data = data.to_string();
            tx.emit(&Event { kind: findings.event, entity_type: "thing", entity_id, version, data });
        }
        Ok(())
    })
}

#[derive(Debug, chassis_derive::FromRow)]
pub(super) struct Plan {
    pub next_at: DateTime<Utc>,
    pub quiet_until: Option<DateTime<Utc>>,
}

pub(super) struct World {
    pub database: TestDatabase,
    pub clock: Clock,
    pub replicas: Vec<Started>,
    other: Started,
}

impl World {
    pub(super) async fn new(replicas: usize) -> Self {
        let (database, clock) =
            (TestDatabase::new(&[("bare", &NO_MIGRATIONS)]).await, chassis_testing::clock());
        sqlx::raw_sql(
            "create table bare.thing (account_id uuid not null, id uuid not null, kind text not null,
                since timestamptz not null, company text not null default '', version bigint not null default 1,
                created_at timestamptz not null generated always as (since) stored, primary key (account_id, id))",
        )
        .execute(&mut database.connect().await)
        .await
        .unwrap();
        let other = chassis_testing::start::<Things>(database.url(), &clock).await;
        let mut world = Self { database, clock, replicas: Vec::new(), other };
        for _ in 0..replicas {
            world.add_replica().await;
        }
        world
    }

    pub(super) async fn add_replica(&mut self) {
        let peers = format!("{}={}", LONELY.service, self.other.url());
        let flags = ["--peers", &peers];
        let replica =
            chassis_testing::start_working::<Things>(self.database.url(), &self.clock, &flags).await;
        self.replicas.push(replica);
    }

    /// Adds an account whose settings the service has received.
    pub(super) async fn account(&self) -> TestCaller {
        let caller = TestCaller::mesh(&chassis_testing::account(), &self.clock);
        self.rename(&caller, "Bakery").await;
        caller
    }

    /// Changes the account, which leaves an entry in its log.
    pub(super) async fn rename(&self, caller: &TestCaller, name: &str) {
        let request = caller.request(ProvisionAccountRequest { name: name.into() });
        let channel = self.replicas[0].channel();
        ProvisioningServiceClient::new(channel).provision_account(request).await.unwrap();
    }

    pub(super) fn scans(&self) -> ScanServiceClient<tonic::transport::Channel> {
        ScanServiceClient::new(self.replicas[0].channel())
    }

    pub(super) async fn add(&self, caller: &TestCaller, kind: &str, since: DateTime<Utc>) -> Uuid {
        self.add_many(caller, kind, since, 1).await[0]
    }

    /// Adds things; returns their ids in order.
    pub(super) async fn add_many(
        &self,
        caller: &TestCaller,
        kind: &str,
        since: DateTime<Utc>,
        count: usize,
    ) -> Vec<Uuid> {
        let ids: Vec<Uuid> = (0..count).map(|_| self.clock.id()).collect();
        sqlx::query(
            "insert into bare.thing (account_id, id, kind, since) select $1, id, $3, $4 from unnest($2::uuid[]) as t (id)",
        )
        .bind(caller.account.id)
        .bind(&ids)
        .bind(kind)
        .bind(since)
        .execute(&mut self.database.connect().await)
        .await
        .unwrap();
        ids
    }

    pub(super) async fn set_since(&self, thing: Uuid, since: DateTime<Utc>) {
        let sql = "update bare.thing set since = $2, version = version + 1 where id = $1";
        let mut connection = self.database.connect().await;
        sqlx::query(sql).bind(thing).bind(since).execute(&mut connection).await.unwrap();
    }

    pub(super) async fn set_kind(&self, thing: Uuid, kind: &str) {
        let sql = "update bare.thing set kind = $2 where id = $1";
        let mut connection = self.database.connect().await;
        sqlx::query(sql).bind(thing).bind(kind).execute(&mut connection).await.unwrap();
    }

    pub(super) async fn set_company(&self, thing: Uuid, company: &str) {
        let sql = "update bare.thing set company = $2 where id = $1";
        let mut connection = self.database.connect().await;
        sqlx::query(sql).bind(thing).bind(company).execute(&mut connection).await.unwrap();
    }

    /// Requests a scan of the account and waits until it has ended.
    pub(super) async fn look(&self, caller: &TestCaller) {
        self.scans().run_scans(caller.request(RunScansRequest {})).await.unwrap();
        self.looked(caller).await;
    }

    /// Waits until the account has been scanned at the clock's time.
    pub(super) async fn looked(&self, caller: &TestCaller) {
        eventually("the account is looked through", async || {
            let rests: bool = sqlx::query_scalar(
                "select exists (select from bare.scan_turn where account_id = $1 and next_at > $2)",
            )
            .bind(caller.account.id)
            .bind(self.clock.now())
            .fetch_one(&mut self.database.connect().await)
            .await
            .unwrap();
            rests
        })
        .await;
    }

    /// When the account's next turn comes if nothing changes, and until when nothing comes, if that is known.
    pub(super) async fn plan(&self, caller: &TestCaller) -> Plan {
        let mut connection = self.database.connect().await;
        eventually("all entries have positions", async || {
            let sql = "select not exists (select from bare.pending where account_id = $1)";
            sqlx::query_scalar(sql).bind(caller.account.id).fetch_one(&mut connection).await.unwrap()
        })
        .await;
        sqlx::query_as(
            "select next_at, case when next_at = quiet_next_at and quiet_position = head.position
                and quiet_zone = account.timezone then quiet_until end as quiet_until
             from bare.scan_turn join bare.account using (account_id) join bare.feed_head head using (account_id)
             where account_id = $1",
        )
        .bind(caller.account.id)
        .fetch_one(&mut self.database.connect().await)
        .await
        .unwrap()
    }

    /// Advances the clock to the account's next turn and waits until that has ended.
    pub(super) async fn next_turn(&self, caller: &TestCaller) {
        let plan = self.plan(caller).await;
        let wait = plan.quiet_until.unwrap_or(plan.next_at) - self.clock.now();
        self.clock.advance(wait.max(TimeDelta::zero()));
        self.looked(caller).await;
    }

    /// Goes from turn to turn until one has found that nothing comes. Returns how long nothing comes.
    pub(super) async fn settle(&self, caller: &TestCaller) -> TimeDelta {
        self.looked(caller).await;
        // A turn before the account's last change has its position does not count.
        for _ in 0..5 {
            if let Some(until) = self.plan(caller).await.quiet_until {
                return until - self.clock.now();
            }
            self.next_turn(caller).await;
        }
        panic!("something comes, or may come: {:?}", self.plan(caller).await);
    }

    /// Goes from turn to turn until an event was emitted. Returns the number of turns.
    pub(super) async fn turns_to_event(&self, caller: &TestCaller, latest: DateTime<Utc>) -> usize {
        let mut turns = 0;
        while self.events(caller).await.is_empty() {
            self.next_turn(caller).await;
            turns += 1;
            assert!(self.clock.now() <= latest, "nothing was told by {latest}");
        }
        turns
    }

    /// The events of the account so far, in order.
    pub(super) async fn events(&self, caller: &TestCaller) -> Vec<(String, Uuid, Value)> {
        sqlx::query_as(
            "select event, record_id::uuid, data::json from bare.log where event is not null and account_id = $1 order by id",
        )
        .bind(caller.account.id)
        .fetch_all(&mut self.database.connect().await)
        .await
        .unwrap()
    }

    pub(super) async fn remembered(&self, caller: &TestCaller) -> i64 {
        sqlx::query_scalar("select count(*) from bare.scan_told where account_id = $1")
            .bind(caller.account.id)
            .fetch_one(&mut self.database.connect().await)
            .await
            .unwrap()
    }

    pub(super) async fn set(
        &self,
        caller: &TestCaller,
        event: &str,
        value: Option<i32>,
    ) -> Result<Option<i32>, Status> {
        let request = caller.request(SetThresholdRequest { event: event.into(), value });
        let answer = self.scans().set_threshold(request).await?.into_inner();
        Ok(answer.threshold.unwrap().value)
    }
}
