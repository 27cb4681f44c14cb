//! Replicas that are killed at every point of a run: before and after each of its writes, and in the middle of each of its
//! effects. And a replica that is not killed but paused, and resumes after its lease has passed to another.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

mod receiver;
mod replicas;
mod trap;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chassis_base::{Account, Clock};
use chassis_service::Service;
use chassis_testing::{SmtpServer, Started, TestCaller, TestDatabase, eventually};
use proto::automation::flow_service_client::FlowServiceClient;
use proto::automation::trigger_service_client::TriggerServiceClient;
use proto::automation::{ApplyFlowRequest, TriggerInput, TriggerRequest};
use receiver::{Hold, Receiver};
use replicas::Replicas;
use svc_automation::Automation;
use svc_relations::Relations;
use trap::Trap;

const ACCOUNTS: usize = 4;
/// Of each account at each kill point.
const RUNS: usize = 4;
const STEPS: i64 = 6;

/// Steps of every kind that needs no person.
const FLOW: &str = "
name: Everything
trigger: {custom: go}
steps:
  - id: make
    call: {method: admin.relations.v1.ClientService/CreateClient, with: {client: {company_name: 'make {{ data.name }}'}}}
    retry: {max_attempts: 20, initial_backoff: 1s, max_backoff: 1s}
  - id: tell
    http: {url: RECEIVER, body: {name: '{{ data.name }}'}}
    timeout: 60s
    retry: {max_attempts: 20, initial_backoff: 1s, max_backoff: 1s}
  - {id: notify, mail: {to: '{{ data.name }}@example.com', subject: Done, text: 'It is done.'}}
  - {id: pause, wait: {for: 1s}}
  - id: check
    when: steps.make.answer.data.id
    then:
      - id: more
        call: {method: admin.relations.v1.ClientService/CreateClient, with: {client: {company_name: 'more {{ data.name }}'}}}
        retry: {max_attempts: 20, initial_backoff: 1s, max_backoff: 1s}
";

/// The point of a run at which its process is killed.
#[derive(Clone, Copy, Debug)]
enum KillPoint {
    /// In a transaction, before its commit; see [`trap`].
    Write(&'static str),
    /// The receiver has its request.
    Request(Hold),
    /// Between two steps, with nothing to do.
    Wait,
}

const KILL_POINTS: [KillPoint; 15] = [
    KillPoint::Write("make running"),
    KillPoint::Write("client make"),
    KillPoint::Write("make done"),
    KillPoint::Write("tell running"),
    KillPoint::Request(Hold::BeforeEffect),
    KillPoint::Request(Hold::BeforeAnswer),
    KillPoint::Write("tell done"),
    KillPoint::Write("notify done"),
    KillPoint::Write("pause waiting"),
    KillPoint::Wait,
    KillPoint::Write("pause done"),
    KillPoint::Write("check done"),
    KillPoint::Write("more running"),
    KillPoint::Write("client more"),
    KillPoint::Write("more done"),
];

struct World {
    database: TestDatabase,
    accounts: Vec<Account>,
    clock: Clock,
    _relations: Started,
    /// Serves requests only, and is never killed.
    api: Started,
    receiver: Arc<Receiver>,
    smtp: SmtpServer,
    flags: Vec<String>,
}

impl World {
    async fn new(accounts: usize) -> Self {
        let schemas =
            [(Automation::NAME, Automation::migrations()), (Relations::NAME, Relations::migrations())];
        let (database, clock) = (TestDatabase::new(&schemas).await, Clock::system());
        // As many as can be blocked at the same time, and some for the others.
        let pool = ["--database-pool", "24"];
        let relations = chassis_testing::start_with::<Relations>(database.url(), &clock, &pool).await;
        let private = ["--allow-private-networks"];
        let api = chassis_testing::start_with::<Automation>(database.url(), &clock, &private).await;
        let (receiver, smtp) = (Receiver::start().await, SmtpServer::start().await);
        let peers = format!("relations={}", relations.url());
        let flags = ["--database-url", database.url(), "--peers", &peers, "--smtp-url", &smtp.url()]
            .into_iter()
            .chain(["--allow-private-networks", "--lease-ms", "2000"])
            .chain(pool)
            .map(str::to_owned)
            .collect();
        let accounts: Vec<Account> = (0..accounts).map(|_| chassis_testing::account()).collect();
        let world = Self { database, accounts, clock, _relations: relations, api, receiver, smtp, flags };
        for account in &world.accounts {
            let definition = FLOW.replace("RECEIVER", &format!("'{}'", world.receiver.url));
            let request = ApplyFlowRequest { definition, active: Some(true) };
            let request = TestCaller::mesh(account, &world.clock).request(request);
            FlowServiceClient::new(world.api.channel()).apply_flow(request).await.unwrap();
        }
        world
    }

    async fn replicas(&self) -> Replicas<'_> {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        Replicas::start(&self.database, &flags).await
    }

    /// Starts a run of the account; its name begins with the account's number.
    async fn start(&self, account: usize, name: &str) {
        let data = serde_json::json!({"name": format!("{account}-{name}")}).to_string();
        let trigger = TriggerInput { event: "go".into(), data, ..TriggerInput::default() };
        let caller = TestCaller::mesh(&self.accounts[account], &self.clock);
        let request = caller.request(TriggerRequest { trigger: Some(trigger) });
        let answer = TriggerServiceClient::new(self.api.channel()).trigger(request).await.unwrap();
        assert_eq!(answer.into_inner().data.unwrap().matched, 1);
    }

    async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query_scalar(sql).fetch_one(&mut self.database.connect().await).await.unwrap()
    }

    /// Waits until so many runs have succeeded, and no other is there.
    async fn until_succeeded(&self, runs: i64) {
        eventually("all runs have succeeded", async || {
            let sql =
                "select coalesce(max(error), '') from automation.run where status in ('failed', 'partial')";
            let error: String =
                sqlx::query_scalar(sql).fetch_one(&mut self.database.connect().await).await.unwrap();
            assert_eq!(error, "", "a run has failed");
            self.count("select count(*) from automation.run where status = 'success'").await == runs
        })
        .await;
        assert_eq!(self.count("select count(*) from automation.run").await, runs);
    }

    /// Waits until a run of the account is at the point.
    async fn until_reached(&self, point: KillPoint, trap: &mut Trap, account: usize) {
        match point {
            KillPoint::Write(_) => trap.until_caught(account).await,
            KillPoint::Request(_) => self.receiver.until_held(&format!("{account}-")).await,
            KillPoint::Wait => {
                let sql =
                    "select exists (select from automation.run where account_id = $1 and status = 'waiting')";
                eventually("a run waits", async || {
                    let query = sqlx::query_scalar(sql).bind(self.accounts[account].id);
                    query.fetch_one(&mut self.database.connect().await).await.unwrap()
                })
                .await;
            }
        }
    }

    /// Each effect of so many runs, wherever it can be seen, once.
    async fn check_effects(&self, runs: i64) {
        let expected = usize::try_from(runs).unwrap();
        assert_eq!(self.count("select count(*) from relations.relation").await, 2 * runs);
        let names =
            "select count(*) from (select distinct account_id, company_name from relations.relation) names";
        assert_eq!(self.count(names).await, 2 * runs, "each client once");
        assert_eq!(self.receiver.effects(), expected, "each request has its id");
        assert_eq!(self.count("select count(*) from automation.mail").await, runs, "each mail once");
        eventually("all mails have come", async || {
            let mails = self.smtp.received();
            mails.iter().flat_map(|mail| &mail.recipients).collect::<HashSet<_>>().len() == expected
        })
        .await;
        // A mail that was sent again, because its first sending was not recorded, has the same id.
        let mut ids: HashMap<Vec<String>, HashSet<String>> = HashMap::new();
        for mail in self.smtp.received() {
            let id = mail.message.lines().find(|line| line.starts_with("Message-ID:")).unwrap().to_owned();
            ids.entry(mail.recipients).or_default().insert(id);
        }
        assert!(ids.values().all(|ids| ids.len() == 1), "{ids:?}");
        let done = "select count(*) from automation.run_step where outcome = 'done' and ended_at is not null";
        assert_eq!(self.count(done).await, STEPS * runs);
        assert_eq!(self.count("select count(*) from automation.run_step").await, STEPS * runs);
        let acted = "select count(*) from automation.run where actions_done = 4";
        assert_eq!(self.count(acted).await, runs);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_at_any_point_loses_no_run_and_duplicates_no_effect() {
    let world = World::new(ACCOUNTS).await;
    let mut trap = Trap::new(&world.database, &world.accounts).await;
    let mut replicas = world.replicas().await;
    let mut runs = 0;
    for (round, kill_point) in KILL_POINTS.into_iter().enumerate() {
        let victim = round % ACCOUNTS;
        match kill_point {
            KillPoint::Write(point) => trap.set(point).await,
            KillPoint::Request(hold) => world.receiver.hold(hold),
            KillPoint::Wait => {}
        }
        for number in 0..RUNS {
            for account in 0..ACCOUNTS {
                world.start(account, &format!("{round}-{number}")).await;
                runs += 1;
            }
        }
        world.until_reached(kill_point, &mut trap, victim).await;
        let killed = replicas.at_work_for(&world.accounts[victim]).await;
        replicas.all[killed].process.kill();
        trap.open().await;
        world.receiver.hold(Hold::Nothing);
        // In every other round the surviving replica has to do it alone.
        if round % 2 == 0 {
            replicas.restart(killed).await;
        }
        world.until_succeeded(runs).await;
        if round % 2 == 1 {
            replicas.restart(killed).await;
        }
    }
    assert!(runs >= 200, "{runs}");
    world.check_effects(runs).await;
    let again = world.count("select count(*) from automation.run_step where attempts > 1").await;
    assert!(again >= 4, "attempts that were killed in the middle were repeated: {again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_was_paused_for_longer_than_its_lease_writes_nothing() {
    let world = World::new(1).await;
    let replicas = world.replicas().await;
    world.receiver.hold(Hold::BeforeAnswer);
    world.start(0, "late").await;
    world.receiver.until_held("0-").await;
    let stopped = replicas.at_work_for(&world.accounts[0]).await;
    replicas.all[stopped].process.pause();
    let next = 1 - stopped;
    eventually("the other one has taken over", async || {
        replicas.at_work_for(&world.accounts[0]).await == next
    })
    .await;
    // Its answer is there when it comes back.
    world.receiver.hold(Hold::Nothing);
    world.until_succeeded(1).await;
    assert_eq!(world.receiver.requests(), 2, "the other one has sent its own request");
    let everything = async || -> Vec<String> {
        let sql =
            "select run::text from automation.run union all select step::text from automation.run_step step
                   order by 1";
        sqlx::query_scalar(sql).fetch_all(&mut world.database.connect().await).await.unwrap()
    };
    let before = everything().await;
    replicas.all[stopped].process.resume();
    eventually("it was refused", async || replicas.lost(stopped).await > 0.0).await;
    assert_eq!(everything().await, before);
    assert_eq!(world.receiver.requests(), 2);
    world.check_effects(1).await;
}
