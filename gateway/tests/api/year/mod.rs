//! A year and more of changes with compaction every month: what is forgotten, and what is there for ever.

mod business;
mod copy;
mod person;
pub(crate) mod stored;

use chassis_base::Account;
use chassis_testing::{TestCaller, eventually, run_scans, undelivered};
use chrono::TimeDelta;
use gateway::ledger::{self, ChainEnd};
use gateway::testing::Api;
use serde_json::json;

use self::business::Business;
use self::copy::Copy;
use self::person::Person;
use crate::chain::receiver;
use crate::changes::all_scopes;
use crate::working_mesh::WorkingMesh;

/// The default of `AUDIT_DAYS`.
const AUDIT_DAYS: u16 = 400;
const STEP_DAYS: i64 = 6;
/// 480 days.
const STEPS: i64 = 80;
/// Every 30 days.
const STEPS_PER_COMPACTION: i64 = 5;
/// Who is erased at which step: more than 400 days before the end, just so, and not.
const ERASED: [i64; 3] = [2, 13, 60];

struct Year {
    mesh: WorkingMesh,
    account: Account,
    api: Api,
}

impl Year {
    async fn start() -> Self {
        let mesh = WorkingMesh::start(&[]).await;
        let account = mesh.gateway.account("Bakery").await;
        let api = mesh.gateway.api(&account, &all_scopes()).await;
        let (url, _) = receiver().await;
        let types = ["customer.created", "customer.updated", "invoice.created", "quote.created"];
        api.post("/v1/webhook-endpoints", json!({"url": url, "types": types})).await.expect(201);
        Self { mesh, account, api }
    }

    /// Waits until all events are delivered: a token that is under way expires when the clock is advanced.
    async fn until_delivered(&self) {
        for service in ["relations", "billing"] {
            let is_done = async || undelivered(&self.mesh.database, service).await == 0;
            eventually("every event is delivered", is_done).await;
        }
    }

    /// The end of every chain, each of which is whole.
    async fn chain_ends(&self) -> Vec<(String, i64, Vec<u8>)> {
        let verified = ledger::verify(&self.mesh.gateway.app.runtime, &self.account).await;
        let ends = verified.into_iter().map(|chain| {
            let ChainEnd { position, hash } = chain.outcome.unwrap();
            (chain.service, position, hash)
        });
        ends.collect()
    }

    /// Compacts every log, as `compact-log` does. Returns in how many entries something was forgotten.
    async fn compact(&self) -> u64 {
        // What time alone causes is told first, so that nothing is added meanwhile.
        run_scans(&self.mesh.billing, &TestCaller::mesh(&self.account, &self.mesh.clock)).await;
        self.until_delivered().await;
        let (ends, deletions) = (self.chain_ends().await, stored::deletions(&self.mesh.database).await);
        let (url, now) = (self.mesh.database.url(), self.mesh.clock.now());
        let mut forgotten = 0;
        for schema in stored::SCHEMAS {
            forgotten += chassis_data::log::compact(url, schema, AUDIT_DAYS, now).await.unwrap().forgotten;
        }
        assert_eq!(self.chain_ends().await, ends, "every chain is whole and ends where it did");
        assert_eq!(stored::deletions(&self.mesh.database).await, deletions, "entries stay");
        forgotten
    }

    async fn until_purged(&self) {
        let now = self.mesh.clock.now();
        let old = async || stored::old_events(&self.mesh.database, now - TimeDelta::days(31)).await;
        eventually("automation has deleted old events and deliveries", async || old().await == 0).await;
    }
}

#[tokio::test]
async fn after_a_year_of_compaction_the_feed_rebuilds_the_account_and_what_was_erased_is_nowhere() {
    let year = Year::start().await;
    let (api, database) = (&year.api, &year.mesh.database);
    let mut business = Business::new(api);
    let mut people = Vec::new();
    for number in 0..ERASED.len() {
        people.push(Person::create(api, number).await);
    }
    // It reads at the beginning, and then not for more than a year.
    let mut sleeper = Copy::default();
    for step in 1..=STEPS {
        year.mesh.clock.advance(TimeDelta::days(STEP_DAYS));
        business.work(step).await;
        if step == 1 {
            sleeper.follow(api).await;
        }
        if let Some(number) = ERASED.iter().position(|at| *at == step) {
            people[number].change_and_erase(&mut business).await;
        }
        year.until_delivered().await;
        if step == ERASED[0] {
            let expected = [
                "automation.event",
                "automation.webhook_delivery",
                "billing.log",
                "relations.log",
                "work.log",
            ];
            eventually("what was erased is found in these", async || {
                let holders = stored::holders(database, people[0].data()).await;
                expected.iter().all(|table| holders.contains(*table))
            })
            .await;
        }
        if step % STEPS_PER_COMPACTION == 0 {
            let forgotten = year.compact().await;
            let is_old = step * STEP_DAYS > AUDIT_DAYS.into();
            assert_eq!(forgotten > 0, is_old, "{forgotten} forgotten after {} days", step * STEP_DAYS);
            let holders = stored::holders(database, people[0].data()).await;
            assert_eq!(holders.contains("billing.log"), !is_old, "of the deletion: {holders:?}");
        }
    }
    let kept_from = year.mesh.clock.now() - TimeDelta::days(AUDIT_DAYS.into());
    stored::check_images(database, kept_from).await;
    year.until_purged().await;
    let nowhere = Vec::<String>::new();
    for person in &people[..2] {
        let holders: Vec<String> = stored::holders(database, person.data()).await.into_iter().collect();
        assert_eq!(holders, nowhere, "{:?}", person.data());
    }
    let holders = stored::holders(database, people[2].data()).await;
    assert!(holders.contains("billing.log") && holders.contains("relations.log"), "not yet: {holders:?}");

    let mut rebuilt = Copy::default();
    rebuilt.follow(api).await;
    rebuilt.check(api).await;
    assert!(business.deleted.len() > 20);
    for record in &business.deleted {
        assert!(rebuilt.deleted.contains(record) && !rebuilt.records.contains_key(record), "{record:?}");
    }
    // Entries stay, so a cursor never becomes too old.
    sleeper.follow(api).await;
    assert_eq!(sleeper.records, rebuilt.records, "who comes late misses nothing");
}
