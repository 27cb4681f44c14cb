//! Events caused by the passing of time: something has not happened for a while, and that is worth an event.
//!
//! A service declares its [`Scan`]s. One worker ([`run`]) scans each account of the service once an hour and finds
//! causes that hold now and have not been reported. An account in which nothing comes for days, and nothing changes, is
//! left alone meanwhile ([`ahead`]). Each cause is reported exactly once: the transaction that emits its event locks the
//! entity, checks the cause again and remembers it. A remembered cause is kept as long as it can hold with any
//! threshold, so that it is never reported twice, and is then forgotten. Each account can set its own thresholds
//! ([`rpc`]). This module does not depend on what the scans look for.

mod ahead;
mod rpc;
mod run;
mod store;

use std::collections::HashMap;
use std::sync::Arc;

use chassis_base::{Account, Error, Timezone};
use chassis_data::write::Tx;
use chassis_rpc::references::{Kind, References};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use uuid::Uuid;

pub use rpc::server;
pub use run::worker;

/// How long a condition must hold before it is reported, unless the account sets another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// A date decides, so there is no threshold to set.
    None,
    Days(i32),
    Hours(i32),
    /// How near a date must be. A cause ends when its date has passed, without any change. All other causes hold until
    /// something changes.
    DaysBefore(i32),
}

impl Threshold {
    fn default_amount(self) -> i32 {
        match self {
            Self::None => 0,
            Self::Days(amount) | Self::Hours(amount) | Self::DaysBefore(amount) => amount,
        }
    }

    fn waited(self, amount: i32) -> TimeDelta {
        match self {
            Self::None => TimeDelta::zero(),
            Self::Days(_) | Self::DaysBefore(_) => TimeDelta::days(amount.into()),
            Self::Hours(_) => TimeDelta::hours(amount.into()),
        }
    }
}

/// Why an event is emitted. Each pair causes one event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, chassis_derive::FromRow)]
pub struct Cause {
    /// What the event is about.
    pub entity_id: Uuid,
    /// Distinguishes this occasion from later occasions of the same entity, for example by the day on which a silence
    /// began; '' if there is only one.
    pub cause: String,
}

/// One kind of event. All texts are SQL of the program, never input.
#[derive(Clone)]
pub struct Scan {
    pub event: &'static str,
    pub threshold: Threshold,
    /// A query for all causes that hold for the account `$1`, reported or not: columns `entity_id` (uuid) and `cause`
    /// (text). `$2` is now minus the threshold (timestamptz), `$3` the account's current date (date), `$4` the
    /// threshold (integer). Must be served by an index that begins with `account_id`, and should not depend on settings
    /// of the connection: a time as a cause is written `(extract(epoch from t) * 1000)::bigint::text`.
    pub causes: &'static str,
    /// A statement that locks the entities of the causes, always in the same order, so that no cause ends between the
    /// check and the event: `$1` is the account, `$2` the entities (uuid[]), `$3` their causes (text[]). '' if there is
    /// nothing to lock.
    pub lock: &'static str,
    /// A condition on `reported`, a remembered cause (`account_id`, `entity_id`, `cause`). It is true as long as the
    /// cause can hold, now or later, with any threshold.
    pub kept: &'static str,
    /// For a scan about records of another service: how to list and describe them. The query of `causes` then has two
    /// more parameters, `$5` (uuid[]) and `$6` (timestamptz[]): some of these records and when they were created. It
    /// returns at most one cause for each of them, none before the record is as old as the threshold, and none for other
    /// records.
    pub external: Option<ExternalRecords>,
    /// Emits an event for each cause. Every event needs its own version of the entity.
    pub emit: Emit,
}

impl Scan {
    /// The threshold of an account that has set these, by event.
    fn amount(&self, thresholds: &HashMap<String, i32>) -> i32 {
        thresholds.get(self.event).copied().unwrap_or(self.threshold.default_amount())
    }
}

/// Records of another service, requested outside any transaction. When the other service no longer lists a record, its
/// causes are forgotten.
#[derive(Clone)]
pub struct ExternalRecords {
    pub references: References,
    pub kind: Kind,
    /// Whether a record can be listed again long after it was created, as a deal that is opened again. The other service
    /// does not tell when that happens.
    pub is_returning: bool,
    pub describe: Arc<dyn Describe>,
}

/// Some records of another service, and when they were created.
#[derive(Clone, Debug, Default)]
struct Listed {
    ids: Vec<Uuid>,
    created: Vec<DateTime<Utc>>,
}

#[tonic::async_trait]
pub trait Describe: Send + Sync {
    /// Returns the event data of these records, an object for each. Records that are left out are not reported now.
    async fn describe(&self, account: &Account, ids: &[Uuid]) -> Result<HashMap<Uuid, Value>, Error>;
}

pub type Emit = for<'a, 'b> fn(&'a mut Tx<'b>, &'a Findings) -> Emission<'a>;
pub type Emission<'a> = BoxFuture<'a, Result<(), Error>>;

/// Causes that are reported now.
#[derive(Clone, Debug)]
pub struct Findings {
    pub event: &'static str,
    pub causes: Vec<Cause>,
    threshold: Threshold,
    amount: i32,
    about: HashMap<Uuid, Value>,
}

impl Findings {
    /// The entities of the causes without duplicates, ordered by id.
    pub fn entities(&self) -> Vec<Uuid> {
        let mut all: Vec<Uuid> = self.causes.iter().map(|cause| cause.entity_id).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The description of the record, for a scan about records of another service.
    pub fn about(&self, entity: Uuid) -> Option<&Value> {
        self.about.get(&entity)
    }

    /// The threshold as an object with `days` or `hours`, for the data of events.
    pub fn threshold_data(&self) -> Value {
        match self.threshold {
            Threshold::None => json!({}),
            Threshold::Days(_) | Threshold::DaysBefore(_) => json!({"days": self.amount}),
            Threshold::Hours(_) => json!({"hours": self.amount}),
        }
    }
}

/// The parameters of a scan's query: its time, and the records that it is limited to.
#[derive(Clone, Debug)]
struct ScanParameters {
    since: DateTime<Utc>,
    today: NaiveDate,
    amount: i32,
    /// For a scan about records of another service.
    listed: Listed,
}

impl ScanParameters {
    fn of(threshold: Threshold, amount: i32, now: DateTime<Utc>, zone: Timezone) -> Self {
        let (since, today) = (now - threshold.waited(amount), now.with_timezone(&zone).date_naive());
        Self { since, today, amount, listed: Listed::default() }
    }
}
