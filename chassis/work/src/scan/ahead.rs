//! Finds out after a turn how long an account stays quiet: the scans search again with the clock set ahead.
//!
//! If they find nothing there, nothing comes before that time unless something changes, and the account needs no turn
//! until then. A logged change ends the quiet, and so does a new time zone or a request ([`DUE_AT`]). If they find
//! something, the account keeps its hourly turns, so an event always comes within the hour after it is due.

use std::collections::HashMap;

use chassis_base::Error;
use chassis_data::log;
use chrono::{DateTime, TimeDelta, Utc};

use super::store::{self, Quiet};
use super::{Cause, Listed, Scan, ScanParameters, Threshold};
use crate::worker::Job;

/// Where turns are and when they are due. An account that was never scanned has no turn yet.
pub(super) const DUE_FROM: &str = "account work
    left join scan_turn turn on turn.account_id = work.account_id
    left join feed_head head on head.account_id = work.account_id";
pub(super) const DUE_AT: &str = "coalesce(
    case when turn.next_at = turn.quiet_next_at and turn.quiet_position = coalesce(head.position, 0)
        and turn.quiet_zone = work.timezone then turn.quiet_until end,
    turn.next_at, '2000-01-01'::timestamptz)";

/// How far to look ahead, the farthest first. A whole number of days.
const STEPS: [TimeDelta; 2] = [TimeDelta::days(7), TimeDelta::days(1)];
/// The farthest look ahead for records of another service that can come back to its list.
const MAX_STEP_OF_RETURNING: TimeDelta = TimeDelta::days(1);
/// The part of a quiet time, one of this number, from which something is cut off at random, so that accounts whose turns
/// came together once, as after an upgrade, do not always come together.
const SPREAD_PART: i64 = 4;

/// One search of a scan, without its time.
struct Search<'a> {
    scan: &'a Scan,
    amount: i32,
    listed: Listed,
}

/// `None` if something comes soon, or may come. `listed` has the records of other services that the turn has listed after
/// `now`.
pub(super) async fn look_ahead(
    job: &Job,
    scans: &[Scan],
    thresholds: &HashMap<String, i32>,
    listed: HashMap<&'static str, Listed>,
    now: DateTime<Utc>,
) -> Result<Option<Quiet>, Error> {
    let Some((searches, max_step)) = searches(scans, thresholds, listed) else { return Ok(None) };
    // Before the searches: they see all changes up to this position, and a later one ends the quiet.
    let position = log::head(job.db(), job.account_id()).await?.position;
    for step in STEPS.into_iter().filter(|step| *step <= max_step) {
        if !finds_any(job, &searches, now, step).await? {
            let zone = job.account().timezone.name();
            return Ok(Some(Quiet { until: now + spread(step), position, zone }));
        }
    }
    Ok(None)
}

/// The searches, and how far ahead they can tell what comes. `None` if they cannot.
fn searches<'a>(
    scans: &'a [Scan],
    thresholds: &HashMap<String, i32>,
    mut listed: HashMap<&'static str, Listed>,
) -> Option<(Vec<Search<'a>>, TimeDelta)> {
    let (mut searches, mut max_step) = (Vec::new(), TimeDelta::MAX);
    for scan in scans {
        let mut search = Search { scan, amount: scan.amount(thresholds), listed: Listed::default() };
        if let Some(external) = &scan.external {
            search.listed = listed.remove(scan.event)?;
            // A record that the other service creates later is not told before it is as old as the threshold.
            max_step = max_step.min(scan.threshold.waited(search.amount));
            if external.is_returning {
                // An account that has such records is in use, and nothing here tells when another one comes back.
                max_step = max_step.min(MAX_STEP_OF_RETURNING);
                if !search.listed.ids.is_empty() {
                    return None;
                }
            }
        }
        searches.push(search);
    }
    Some((searches, max_step))
}

/// Whether a turn at `now` plus `step`, or before it, would find a cause that is not reported yet.
async fn finds_any(
    job: &Job,
    searches: &[Search<'_>],
    now: DateTime<Utc>,
    step: TimeDelta,
) -> Result<bool, Error> {
    let (account, zone) = (job.account_id(), job.account().timezone);
    job.db()
        .read(async |connection| {
            for Search { scan, amount, listed } in searches {
                for at in times(scan.threshold, now, step) {
                    let parameters = ScanParameters {
                        listed: listed.clone(),
                        ..ScanParameters::of(scan.threshold, *amount, at, zone)
                    };
                    let before_all = Cause::default();
                    let found =
                        store::find_causes(connection, account, scan, &parameters, &before_all, 1).await?;
                    if !found.is_empty() {
                        return Ok(true);
                    }
                }
            }
            Ok(false)
        })
        .await
}

/// The times at which a search finds all that comes until `now` plus `step`. A cause that holds until something changes
/// still holds at the end. One that time ends holds on two dates at least, so it is found once a day.
fn times(threshold: Threshold, now: DateTime<Utc>, step: TimeDelta) -> Vec<DateTime<Utc>> {
    match threshold {
        Threshold::DaysBefore(_) => (0..=step.num_days()).map(|day| now + TimeDelta::days(day)).collect(),
        Threshold::None | Threshold::Days(_) | Threshold::Hours(_) => vec![now + step],
    }
}

/// `step`, or somewhat less.
fn spread(step: TimeDelta) -> TimeDelta {
    let full = step.num_milliseconds();
    TimeDelta::milliseconds(full - rand::random_range(0..=full / SPREAD_PART))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_times_differ_and_none_is_longer_than_what_was_looked_at() {
        for step in STEPS {
            let all: Vec<TimeDelta> = (0..100).map(|_| spread(step)).collect();
            assert!(all.iter().all(|time| (step * 3 / 4..=step).contains(time)), "{step}");
            assert!(all.iter().any(|time| *time != all[0]), "{step}");
        }
    }

    #[test]
    fn what_ends_with_time_is_looked_for_on_each_day() {
        let now = chassis_testing::moment();
        let week = TimeDelta::days(7);
        assert_eq!(times(Threshold::Days(3), now, week), [now + week]);
        let days: Vec<_> = (0..=7).map(|day| now + TimeDelta::days(day)).collect();
        assert_eq!(times(Threshold::DaysBefore(3), now, week), days);
    }
}
