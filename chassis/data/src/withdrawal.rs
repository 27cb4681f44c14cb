//! Withdrawals: records of other services that are being removed, and that nothing here may refer to from then on.
//!
//! Who refers to a record looks it up before the write, and it may be gone when the write commits. So the service that
//! removes it withdraws it first from all services that may refer to it. A write that refers to a record
//! ([`Plan::refers_to`](crate::Plan::refers_to)) locks a row that lists what is withdrawn, with its last statement, and fails if
//! the record is listed; a withdrawal locks all rows of the account, and counts who refers to the record under these
//! locks. So either the write is counted or it is refused. A withdrawal ends by itself, later than any call can last that has
//! looked the record up before; whoever was killed in between leaves nothing behind.

use std::sync::atomic::{AtomicU16, Ordering};

use chassis_base::{AccountId, Error};
use chrono::{DateTime, TimeDelta, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

/// How long a withdrawal lasts: longer than a call.
const DURATION: TimeDelta = TimeDelta::minutes(2);
/// How many rows an account has.
const SLOTS: u16 = 8;

pub(crate) const TABLE: &str = "reference_guard";

/// Account, slot, time and records.
pub(crate) const PARAMETERS: usize = 4;

/// The part of a statement that fails if one of the records is withdrawn. Without a `where` that holds, the row is
/// only locked.
pub(crate) fn guard_sql(bound: usize) -> String {
    let [account, slot, at, records]: [usize; PARAMETERS] = std::array::from_fn(|place| bound + place + 1);
    format!(
        "guard as (
            insert into reference_guard (account_id, slot, records, names, ends, last_end, allowed)
            values (${account}::uuid, ${slot}::smallint, '{{}}', '{{}}', '{{}}', ${at}::timestamptz, true)
            on conflict (account_id, slot) do update set allowed = null
                where reference_guard.last_end > excluded.last_end and reference_guard.records && ${records}::uuid[]
        )"
    )
}

/// The row that a write locks. Writes take them in turn.
pub(crate) fn next_slot() -> i16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    i16::try_from(NEXT.fetch_add(1, Ordering::Relaxed) % SLOTS).unwrap_or_default()
}

/// What is withdrawn from an account, while all of its rows are locked.
#[derive(chassis_derive::FromRow)]
pub(crate) struct Withdrawals {
    records: Vec<Uuid>,
    names: Vec<Uuid>,
    ends: Vec<DateTime<Utc>>,
}

impl Withdrawals {
    /// Locks the rows. This waits for the writes that have locked one of them.
    pub(crate) async fn lock(
        connection: &mut PgConnection,
        account: AccountId,
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        let slots: Vec<i16> = (0..SLOTS).filter_map(|slot| i16::try_from(slot).ok()).collect();
        let sql = "insert into reference_guard (account_id, slot, records, names, ends, last_end, allowed)
            select $1, slot, '{}', '{}', '{}', $3, true from unnest($2::smallint[]) as slots (slot) order by slot
            on conflict (account_id, slot) do update set allowed = true
            returning records, names, ends";
        let rows: Vec<Self> =
            sqlx::query_as(sql).bind(account).bind(slots).bind(now).fetch_all(connection).await?;
        // All rows have the same.
        let row = rows.into_iter().next();
        row.ok_or_else(|| Error::Internal("reference_guard has no rows".to_owned()))
    }

    pub(crate) fn begin(&mut self, record: Uuid, withdrawal: Uuid, now: DateTime<Utc>) {
        self.records.push(record);
        self.names.push(withdrawal);
        self.ends.push(now + DURATION);
    }

    pub(crate) fn end(&mut self, withdrawal: Uuid) {
        self.keep(|it, _| it != withdrawal);
    }

    /// Stores those that have not ended.
    pub(crate) async fn store(
        mut self,
        connection: &mut PgConnection,
        account: AccountId,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        self.keep(|_, end| end > now);
        let sql = "update reference_guard set records = $2, names = $3, ends = $4, last_end = $5
             where account_id = $1";
        sqlx::query(sql)
            .bind(account)
            .bind(&self.records)
            .bind(&self.names)
            .bind(&self.ends)
            .bind(self.ends.iter().max().copied().unwrap_or(now))
            .execute(connection)
            .await?;
        Ok(())
    }

    fn keep(&mut self, is_kept: impl Fn(Uuid, DateTime<Utc>) -> bool) {
        let kept: Vec<bool> = self.names.iter().zip(&self.ends).map(|(it, end)| is_kept(*it, *end)).collect();
        retain(&mut self.records, &kept);
        retain(&mut self.names, &kept);
        retain(&mut self.ends, &kept);
    }
}

fn retain<T>(values: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    values.retain(|_| kept.next().copied().unwrap_or_default());
}
