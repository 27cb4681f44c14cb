//! Flows that start at their times: when that is, and the worker that sees to it.

use chassis::Tx;
use chassis::worker::{Due, Job, Next, Worker};
use chrono::{DateTime, SubsecRound, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds, Year};
use serde_json::json;

use super::store;
use crate::event::{self, Event, rfc3339};
use crate::run::start;

/// What everyone else hears of a start.
const RECURRING: &str = "work.recurring";
/// Flows of one account that start in one transaction.
const BATCH: i64 = 50;

/// Starts scheduled flows when their time has come. A time that passed while nobody was there is made up for once.
pub(crate) fn worker() -> Worker {
    let due = Due {
        table: "flow",
        live: "work.next_start_at is not null",
        due: "work.next_start_at <= $2",
        argument: String::new(),
    };
    Worker::new("schedules", due, async |job: Job| {
        let started = job.write(&(), start_due).await?;
        Ok(if started < BATCH { Next::WhenDue } else { Next::Now })
    })
}

async fn start_due(tx: &mut Tx<'_>, (): &()) -> Result<i64, crate::Error> {
    let (account, now, zone) = (tx.account(), tx.now(), tx.settings().timezone);
    tx.unaudited("when it starts next is no change of a flow");
    let due = store::find_scheduled(tx.db(), account, now, BATCH).await?;
    for (flow, planned) in &due {
        let data = json!({"flow_id": flow.id, "flow_name": flow.name, "scheduled_for": rfc3339(*planned)});
        let event = Event {
            id: tx.id(),
            kind: RECURRING.to_owned(),
            entity_type: "flow".to_owned(),
            entity_id: flow.id.to_string(),
            sequence: None,
            data: data.to_string(),
            occurred_at: now,
            depth: 0,
            actor: String::new(),
        };
        start::of_flow(tx, flow, &event).await?;
        event::operations::take(tx, &[event]).await?;
        // A line that was checked may still never come again.
        let following = next(&flow.trigger_key, now, zone).ok();
        store::set_next_start(tx.db(), account, flow.id, following).await?;
    }
    Ok(i64::try_from(due.len()).unwrap_or(i64::MAX))
}

/// The first time after `now` that a cron line names, or why it names none.
pub(crate) fn next(line: &str, now: DateTime<Utc>, zone: Tz) -> Result<DateTime<Utc>, String> {
    if line.len() > 255 {
        return Err("it has more than 255 characters".to_owned());
    }
    let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
    let cron = parser.parse(line).map_err(|error| error.to_string())?;
    // What is found would have the same part of a second.
    let local = now.trunc_subsecs(0).with_timezone(&zone);
    let next = cron.find_next_occurrence(&local, false).map_err(|error| error.to_string())?;
    Ok(next.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn next_at(line: &str, now: &str) -> Result<String, String> {
        let now = DateTime::parse_from_rfc3339(now).unwrap().to_utc();
        next(line, now, chrono_tz::Europe::Amsterdam).map(|time| time.to_rfc3339())
    }

    #[test]
    fn a_line_is_read_in_the_accounts_zone() {
        assert_eq!(next_at("0 9 * * 1", "2026-11-15T12:00:00Z").unwrap(), "2026-11-16T08:00:00+00:00");
        assert_eq!(next_at("0 9 * * 1", "2026-11-16T07:59:59.9Z").unwrap(), "2026-11-16T08:00:00+00:00");
        assert_eq!(next_at("0 9 * * *", "2026-07-01T07:00:00Z").unwrap(), "2026-07-02T07:00:00+00:00");
        assert_eq!(
            next_at("30 2 * * *", "2026-03-28T12:00:00Z").unwrap(),
            "2026-03-29T01:00:00+00:00",
            "no 2:30 on that day"
        );
    }

    #[test]
    fn what_is_no_line_or_never_comes_is_refused() {
        for wrong in ["", "every day", "0 9 * *", "0 0 9 * * *", "61 * * * *", "0 0 30 2 *"] {
            assert!(next_at(wrong, "2026-11-15T12:00:00Z").is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_line_makes_it_panic(line in "[0-9*/,#?A-Z -]{0,20}") {
            let _ = next_at(&line, "2026-11-15T12:00:00Z");
        }
    }
}
