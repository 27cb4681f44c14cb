//! Changing a subscription. A change applies to the periods that have no invoice yet.

use chassis_base::update_mask::UpdateMask;
use chassis_data::Tx;
use proto::At;
use proto::api::Fault;
use proto::billing::{SubscriptionItem, SubscriptionPatch};

use super::{NOT_FOUND, lock, save};
use crate::error::Error;
use crate::settings;
use crate::subscription::rules::plan::{Plan, Status};
use crate::subscription::rules::{lines, terms};
use crate::subscription::store;

/// Changes the fields of the mask; without a mask, all fields. A request that changes nothing writes nothing.
pub(crate) async fn patch(
    tx: &mut Tx<'_>,
    id: &str,
    given: &SubscriptionPatch,
    mask: Option<&prost_types::FieldMask>,
) -> Result<SubscriptionItem, Error> {
    let at = At::ROOT.name("subscription");
    let named = UpdateMask::from(mask);
    named.check(|name| terms::PATCH_FIELDS.contains(&name), "subscription", &mut tx.faults);
    chassis_base::id::ignore_malformed(&mut tx.faults);
    let (account, today) = (tx.account(), tx.today());
    let replaced = if named.has("lines") {
        let defaults = settings::store::for_documents(tx.db(), account).await?;
        Some(lines::of_input(&given.lines, &defaults.rates, &at, &mut tx.faults))
    } else {
        None
    };
    let Some(mut full) = lock(tx, id).await? else {
        // Faults of the body are reported before an id that does not exist.
        tx.valid()?;
        return Err(NOT_FOUND);
    };
    let before = full.record.plan;
    let mut plan = terms::patched(&before, given, named, &at, &mut tx.faults);
    let empties = replaced.as_ref().is_some_and(|(lines, _)| lines.is_empty());
    if empties && before.status != Status::Draft {
        let detail = "lines is required: a subscription that has started needs at least one";
        tx.faults.add(&at.name("lines"), Fault::Required, detail);
    }
    tx.valid()?;
    if plan != before {
        if before.status == Status::Ended && !is_sooner_end(&before, &plan) {
            return Err(Error::Ended);
        }
        plan.changed(&before, today);
    }
    let replaced = replaced.filter(|(lines, _)| *lines != full.lines);
    let record = &mut full.record;
    let is_renamed = named.has("title") && given.title != record.title;
    if plan == before && replaced.is_none() && !is_renamed {
        return Ok((&*record).into());
    }
    record.plan = plan;
    named.put("title", &given.title, &mut record.title);
    if let Some((lines, amounts)) = replaced {
        record.set_amounts(&lines, &amounts);
        store::replace_lines(tx.db(), account, record.id, &lines).await?;
        full.lines = lines;
    }
    save(tx, &mut full).await?;
    Ok((&full.record).into())
}

/// Whether a change only moves the end to an earlier day, which is the one change that an ended plan allows.
fn is_sooner_end(before: &Plan, after: &Plan) -> bool {
    let sooner = before.end.zip(after.end).is_some_and(|(before, after)| after < before);
    sooner && Plan { end: before.end, ..*after } == *before
}
