//! The checks of a new plan and of a change to one.

use chassis_base::update_mask::UpdateMask;
use chrono::{Months, NaiveDate};
use proto::api::Fault;
use proto::billing::{SubscriptionInput, SubscriptionPatch, SubscriptionTerm};
use proto::{At, Faults};

use super::calendar::Term;
use super::plan::{Plan, Status};

/// How far back the first invoice date may be, so that a mistyped year does not create thousands of invoices.
const MAX_YEARS_BACK: u32 = 10;

pub(crate) const PATCH_FIELDS: [&str; 7] =
    ["title", "frequency", "subscription_start", "subscription_end", "day_of_month", "day_of_week", "lines"];

pub(crate) fn from_message(given: SubscriptionTerm) -> Term {
    match given {
        SubscriptionTerm::Weekly => Term::Weekly,
        SubscriptionTerm::FourWeeks => Term::FourWeeks,
        SubscriptionTerm::Unspecified | SubscriptionTerm::Monthly => Term::Monthly,
        SubscriptionTerm::Quarterly => Term::Quarterly,
        SubscriptionTerm::HalfYearly => Term::HalfYearly,
        SubscriptionTerm::Yearly => Term::Yearly,
    }
}

pub(crate) fn to_message(term: Term) -> SubscriptionTerm {
    match term {
        Term::Weekly => SubscriptionTerm::Weekly,
        Term::FourWeeks => SubscriptionTerm::FourWeeks,
        Term::Monthly => SubscriptionTerm::Monthly,
        Term::Quarterly => SubscriptionTerm::Quarterly,
        Term::HalfYearly => SubscriptionTerm::HalfYearly,
        Term::Yearly => SubscriptionTerm::Yearly,
    }
}

/// The plan of a create request, as a draft. Not usable if faults were added.
pub(crate) fn of_input(
    given: &SubscriptionInput,
    today: NaiveDate,
    at: &At<'_>,
    faults: &mut Faults,
) -> Plan {
    let plan = Plan {
        term: from_message(given.frequency()),
        start: given.subscription_start.parse().ok(),
        end: given.subscription_end.parse().ok(),
        first: given.first_generate_date.parse().ok(),
        day_of_month: day(given.day_of_month),
        day_of_week: day(given.day_of_week),
        status: Status::Draft,
        series: None,
        last: None,
        billed_until: None,
        next: None,
    };
    check(&plan, UpdateMask::All, at, faults);
    let earliest = today.checked_sub_months(Months::new(12 * MAX_YEARS_BACK));
    if let (Some(first), Some(earliest)) = (plan.first, earliest)
        && first < earliest
    {
        let detail = format!("first_generate_date must not be before {earliest}: each date gets an invoice");
        faults.add(&at.name("first_generate_date"), Fault::OutOfRange, detail);
    }
    plan
}

/// The plan with the fields that the mask of a change names.
pub(crate) fn patched(
    current: &Plan,
    given: &SubscriptionPatch,
    named: UpdateMask<'_>,
    at: &At<'_>,
    faults: &mut Faults,
) -> Plan {
    let mut plan = *current;
    named.put("frequency", &from_message(given.frequency()), &mut plan.term);
    named.put("subscription_start", &given.subscription_start.parse().ok(), &mut plan.start);
    named.put("subscription_end", &given.subscription_end.parse().ok(), &mut plan.end);
    named.put("day_of_month", &day(given.day_of_month), &mut plan.day_of_month);
    named.put("day_of_week", &day(given.day_of_week), &mut plan.day_of_week);
    if plan.start.is_none() && current.status != Status::Draft {
        let detail = "subscription_start cannot be emptied: the subscription has started";
        faults.add(&at.name("subscription_start"), Fault::NotNullable, detail);
    }
    check(&plan, named, at, faults);
    check_end(&plan, at, faults);
    plan
}

/// Checks that the end is not before the last billed date.
pub(crate) fn check_end(plan: &Plan, at: &At<'_>, faults: &mut Faults) {
    if let (Some(end), Some(last)) = (plan.end, plan.last)
        && end < last
    {
        let detail = format!("subscription_end must not be before {last}, the date of the last invoice");
        faults.add(&at.name("subscription_end"), Fault::Conflicting, detail);
    }
}

fn day(given: Option<i32>) -> Option<u32> {
    given.and_then(|day| u32::try_from(day).ok())
}

/// Checks for values that contradict each other. The fault is reported at a field that the request names.
fn check(plan: &Plan, named: UpdateMask<'_>, at: &At<'_>, faults: &mut Faults) {
    let mut conflict = |fields: [&'static str; 2], detail: String| {
        let field = fields.into_iter().find(|field| named.has(field));
        if let Some(field) = field {
            faults.add(&at.name(field), Fault::Conflicting, detail);
        }
    };
    if plan.term.is_of_weeks() && plan.day_of_month.is_some() {
        let detail = "day_of_month goes with terms of months; send day_of_week for weekly and four_weeks, \
                      and day_of_month null if it was set";
        conflict(["day_of_month", "frequency"], detail.to_owned());
    }
    if !plan.term.is_of_weeks() && plan.day_of_week.is_some() {
        let detail = "day_of_week goes with weekly and four_weeks; send day_of_month for the other terms, \
                      and day_of_week null if it was set";
        conflict(["day_of_week", "frequency"], detail.to_owned());
    }
    if let (Some(start), Some(end)) = (plan.start, plan.end)
        && end < start
    {
        let detail = format!("subscription_end ({end}) must not be before subscription_start ({start})");
        conflict(["subscription_end", "subscription_start"], detail);
    }
    // After the first invoice its date no longer matters.
    let Some(first) = plan.first.filter(|_| plan.last.is_none()) else { return };
    if let Some(start) = plan.start.filter(|start| first < *start) {
        let detail = format!("first_generate_date ({first}) must not be before subscription_start ({start})");
        conflict(["first_generate_date", "subscription_start"], detail);
    }
    if let Some(end) = plan.end.filter(|end| *end < first) {
        let detail = format!("first_generate_date ({first}) must not be after subscription_end ({end})");
        conflict(["first_generate_date", "subscription_end"], detail);
    }
}
