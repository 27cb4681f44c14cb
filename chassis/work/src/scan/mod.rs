//! Events that come from time passing: nobody does anything, and after a while that is worth telling.
//!
//! A service declares its [`Scan`]s. One worker ([`run`]) goes through the accounts that the service was told of, each
//! once an hour, and finds causes that hold now and were not told yet. Each is told exactly once: it is remembered in
//! the transaction that emits its event, after what it is about was locked and looked at again. A remembered cause stays
//! as long as it can hold, whatever the thresholds, so that it is never told twice; then it is forgotten. How long is
//! long is each account's own decision ([`rpc`]). Knows nothing of what is looked for.

mod rpc;
mod run;
mod store;

use std::collections::HashMap;
use std::sync::Arc;

use chassis_base::{Account, Error};
use chassis_data::write::Tx;
use chassis_rpc::references::{Kind, References};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use uuid::Uuid;

pub use rpc::server;
pub use run::worker;

/// How long something has to be so before it is told, unless the account says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// A date decides, and there is nothing to choose.
    None,
    Days(i32),
    Hours(i32),
}

impl Threshold {
    fn default_amount(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Days(amount) | Self::Hours(amount) => amount,
        }
    }
}

/// Why an event is told: once for each pair.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, sqlx::FromRow)]
pub struct Cause {
    /// What the event is about.
    pub entity_id: Uuid,
    /// What tells this occasion from the next one of the same entity, for example the day on which a silence began; ''
    /// where there is only one.
    pub cause: String,
}

/// One kind of event. All SQL is of the program itself, never input.
#[derive(Clone)]
pub struct Scan {
    pub event: &'static str,
    pub threshold: Threshold,
    /// A query for all causes that hold for the account `$1`, told or not: columns `entity_id` (uuid) and `cause` (text).
    /// `$2` is the time that lies the threshold ago (timestamptz), `$3` the account's today (date), `$4` the threshold
    /// (integer). Must be served by an index that begins with `account_id`, and should not depend on settings of the
    /// connection: a time as a cause is written `(extract(epoch from t) * 1000)::bigint::text`.
    pub causes: &'static str,
    /// A statement that locks what the causes are about, always in the same order, so that none of it ends between the
    /// look and the event: `$1` is the account, `$2` the entities (uuid[]), `$3` their causes (text[]). '' when there is
    /// nothing to lock.
    pub lock: &'static str,
    /// A condition on `told`, a remembered cause (`account_id`, `entity_id`, `cause`), that is true as long as it can
    /// hold, now or later, with any threshold.
    pub kept: &'static str,
    /// Of a scan about records of another service: how they are asked for. Then the query of `causes` has two more
    /// parameters, `$5` (uuid[]) and `$6` (timestamptz[]): some of these records and when they were created. It gives
    /// one cause of each at most, and none of others.
    pub ask: Option<Ask>,
    /// Emits an event for each cause. Every event needs a version of its entity that no other event has.
    pub tell: Tell,
}

/// Records of another service. Asked for outside any transaction; a cause whose record is not among them any more is
/// forgotten.
#[derive(Clone)]
pub struct Ask {
    pub references: References,
    pub kind: Kind,
    pub describe: Arc<dyn Describe>,
}

#[tonic::async_trait]
pub trait Describe: Send + Sync {
    /// What events tell of these records: an object each. What is left out is not told of now.
    async fn describe(&self, account: &Account, ids: &[Uuid]) -> Result<HashMap<Uuid, Value>, Error>;
}

pub type Tell = for<'a, 'b> fn(&'a mut Tx<'b>, &'a Findings) -> Telling<'a>;
pub type Telling<'a> = BoxFuture<'a, Result<(), Error>>;

/// Causes that are told now.
#[derive(Clone, Debug)]
pub struct Findings {
    pub event: &'static str,
    pub causes: Vec<Cause>,
    threshold: Threshold,
    amount: i32,
    about: HashMap<Uuid, Value>,
}

impl Findings {
    /// What the causes are about, each once, in the order of the ids.
    pub fn entities(&self) -> Vec<Uuid> {
        let mut all: Vec<Uuid> = self.causes.iter().map(|cause| cause.entity_id).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// What the other service says about its record, when the scan asks one.
    pub fn about(&self, entity: Uuid) -> Option<&Value> {
        self.about.get(&entity)
    }

    /// An object for the events' data: the threshold as `days` or `hours`.
    pub fn waited(&self) -> Value {
        match self.threshold {
            Threshold::None => json!({}),
            Threshold::Days(_) => json!({"days": self.amount}),
            Threshold::Hours(_) => json!({"hours": self.amount}),
        }
    }
}

/// The moment of a look, as a scan's query asks for it, and what it is limited to.
#[derive(Clone, Debug)]
struct Reach {
    since: DateTime<Utc>,
    today: NaiveDate,
    amount: i32,
    /// Of a scan about records of another service: some of them, and when they were created.
    listed: Vec<Uuid>,
    created: Vec<DateTime<Utc>>,
}

impl Reach {
    fn of(threshold: Threshold, amount: i32, now: DateTime<Utc>, zone: chrono_tz::Tz) -> Self {
        let waited = match threshold {
            Threshold::None => TimeDelta::zero(),
            Threshold::Days(_) => TimeDelta::days(amount.into()),
            Threshold::Hours(_) => TimeDelta::hours(amount.into()),
        };
        let (since, today) = (now - waited, now.with_timezone(&zone).date_naive());
        Self { since, today, amount, listed: Vec::new(), created: Vec::new() }
    }
}
