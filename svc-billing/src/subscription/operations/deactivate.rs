//! Ending a subscription.

use chassis_data::Tx;
use proto::At;
use proto::billing::{DeactivatedSubscription, Deactivation};

use super::{NOT_FOUND, lock, save};
use crate::error::Error;
use crate::subscription::rules::plan::Status;
use crate::subscription::rules::terms;

/// Ends a subscription, which is final. One that has ended before stays as it is.
pub(crate) async fn deactivate(
    tx: &mut Tx<'_>,
    id: &str,
    given: &Deactivation,
) -> Result<DeactivatedSubscription, Error> {
    chassis_base::id::ignore_malformed(&mut tx.faults);
    let at = At::ROOT.name("deactivation");
    let today = tx.today();
    let Some(mut full) = lock(tx, id).await? else {
        // Faults of the body are reported before an id that does not exist.
        tx.valid()?;
        return Err(NOT_FOUND);
    };
    let record = &mut full.record;
    if record.plan.status != Status::Ended {
        // Without a date it ends today, or on the last billed date if that is later: the account may have moved to a
        // time zone in which that day is still to come.
        let end = given.subscription_end.parse().ok();
        let end = end.unwrap_or_else(|| record.plan.last.map_or(today, |last| last.max(today)));
        record.plan.end_on(end, today);
        terms::check_end(&record.plan, &at, &mut tx.faults);
        tx.valid()?;
        save(tx, &mut full).await?;
    }
    tx.valid()?;
    Ok((&full.record).into())
}
