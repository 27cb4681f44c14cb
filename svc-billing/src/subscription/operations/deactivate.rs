//! A subscription ends.

use chassis_data::Tx;
use proto::At;
use proto::billing::{DeactivatedSubscription, Deactivation};

use super::{UNKNOWN, lock, save};
use crate::Error;
use crate::subscription::answer;
use crate::subscription::rules::plan::Status;
use crate::subscription::rules::terms;

/// Ends it for ever; what has ended before stays as it is.
pub async fn deactivate(
    tx: &mut Tx<'_>,
    id: &str,
    given: &Deactivation,
) -> Result<DeactivatedSubscription, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    let at = At::ROOT.name("deactivation");
    let today = tx.today();
    let Some(mut full) = lock(tx, id).await? else {
        // The faults of the body come before an unknown id.
        tx.valid()?;
        return Err(UNKNOWN);
    };
    let record = &mut full.record;
    if record.plan.status != Status::Ended {
        // What was billed stays within it, also when the account has moved to a zone where that day is still to come.
        let end = given.subscription_end.parse().ok();
        let end = end.unwrap_or_else(|| record.plan.last.map_or(today, |last| last.max(today)));
        record.plan.end_on(end, today);
        terms::check_end(&record.plan, &at, &mut tx.faults);
        tx.valid()?;
        save(tx, record).await?;
    }
    tx.valid()?;
    Ok(DeactivatedSubscription {
        id: record.id.to_string(),
        status: answer::status(record.plan.status).into(),
        end_date: record.plan.end.map(|end| end.to_string()).unwrap_or_default(),
    })
}
