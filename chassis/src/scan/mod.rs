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

use std::sync::Arc;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::account::Account;
use crate::error::Error;
use crate::write::Tx;

pub(crate) use rpc::server;
pub(crate) use run::worker;

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
    /// What another service has to say about causes before they are told: gives back those that hold. Asked outside any
    /// transaction; what does not hold is asked about again in an hour.
    pub ask: Option<Ask>,
    /// Emits an event for each cause. Every event needs a version of its entity that no other event has.
    pub tell: Tell,
}

pub type Ask =
    Arc<dyn Fn(Account, Vec<Cause>) -> BoxFuture<'static, Result<Vec<Cause>, Error>> + Send + Sync>;
pub type Tell = for<'a, 'b> fn(&'a mut Tx<'b>, &'a Findings) -> Telling<'a>;
pub type Telling<'a> = BoxFuture<'a, Result<(), Error>>;

/// Causes that are told now.
#[derive(Clone, Debug)]
pub struct Findings {
    pub event: &'static str,
    pub causes: Vec<Cause>,
    threshold: Threshold,
    amount: i32,
}

impl Findings {
    /// What the causes are about, each once, in the order of the ids.
    pub fn entities(&self) -> Vec<Uuid> {
        let mut all: Vec<Uuid> = self.causes.iter().map(|cause| cause.entity_id).collect();
        all.sort_unstable();
        all.dedup();
        all
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

/// The moment of a look, as a scan's query asks for it.
#[derive(Clone, Copy, Debug)]
struct Reach {
    since: DateTime<Utc>,
    today: NaiveDate,
    amount: i32,
}

impl Reach {
    fn of(threshold: Threshold, amount: i32, now: DateTime<Utc>, zone: chrono_tz::Tz) -> Self {
        let waited = match threshold {
            Threshold::None => TimeDelta::zero(),
            Threshold::Days(_) => TimeDelta::days(amount.into()),
            Threshold::Hours(_) => TimeDelta::hours(amount.into()),
        };
        Self { since: now - waited, today: now.with_timezone(&zone).date_naive(), amount }
    }
}
