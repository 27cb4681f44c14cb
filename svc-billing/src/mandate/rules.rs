//! The status of a mandate, and how it changes with payments and with the provider's lists of mandates. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use proto::billing::MandateStatus;
use provider::Mandate;

use super::{Debtor, MandateState};
use crate::online_payment::{OnlinePayment, Purpose, Status};

/// The time after which a valid mandate is fetched again, plus up to so many minutes, which spread the load.
const FETCH_INTERVAL: TimeDelta = TimeDelta::hours(18);
const SPREAD_MINUTES: u128 = 240;

/// The public status of a client's mandate. A valid mandate counts, also while a new verification is open.
pub(crate) fn status(debtor: Option<&Debtor>, verification: Option<Status>) -> MandateStatus {
    let state = debtor.map_or(MandateState::None, |debtor| debtor.mandate);
    match (state, verification) {
        (MandateState::Valid, _) if debtor.is_some_and(|debtor| debtor.activated_at.is_some()) => {
            MandateStatus::Active
        }
        (MandateState::Valid, _) => MandateStatus::Authorized,
        (_, Some(status)) if status.is_open() => MandateStatus::Pending,
        (MandateState::None | MandateState::Pending, Some(Status::Paid)) => MandateStatus::Verified,
        _ => MandateStatus::None,
    }
}

pub(crate) fn is_authorized(status: MandateStatus) -> bool {
    matches!(status, MandateStatus::Authorized | MandateStatus::Active)
}

/// A provider's list of the mandates of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MandateReport<'a> {
    /// Newest first.
    pub mandates: &'a [Mandate],
    /// When the provider was asked.
    pub at: DateTime<Utc>,
}

/// The debtor after a payment changed, and perhaps its mandates were fetched.
pub(crate) fn apply_payment(
    current: &Debtor,
    payment: &OnlinePayment,
    report: Option<MandateReport<'_>>,
    now: DateTime<Utc>,
) -> Debtor {
    let mut debtor = current.clone();
    let paid = payment.status == Status::Paid;
    if paid && payment.purpose == Purpose::Verification {
        debtor.verified_at = debtor.verified_at.or(payment.paid_at).or(Some(now));
    }
    if let Some(report) = report {
        debtor = apply_report(&debtor, report);
    }
    // A collection with an older mandate says nothing about the current one.
    let collected = paid && payment.purpose == Purpose::Collection && payment.mandate_id == debtor.mandate_id;
    if collected {
        debtor.activated_at = debtor.activated_at.or(payment.paid_at).or(Some(now));
    }
    debtor
}

/// The debtor after its mandates were fetched. Answers can arrive late and in any order; one that is older than the
/// stored state changes nothing.
pub(crate) fn apply_report(current: &Debtor, report: MandateReport<'_>) -> Debtor {
    let mut debtor = current.clone();
    if current.asked_at.is_some_and(|asked| asked > report.at) {
        return debtor;
    }
    debtor.asked_at = Some(report.at);
    match choose(report.mandates, &current.mandate_id) {
        Some(mandate) => {
            if mandate.id != current.mandate_id {
                debtor.authorized_at = None;
                debtor.activated_at = None;
            }
            debtor.mandate_id.clone_from(&mandate.id);
            debtor.mandate = mandate.status.into();
            if debtor.mandate == MandateState::Valid {
                debtor.authorized_at = debtor.authorized_at.or(Some(report.at));
            }
        }
        // The provider no longer lists the mandate: it was withdrawn.
        None if !current.mandate_id.is_empty() => debtor.mandate = MandateState::Invalid,
        None => {}
    }
    debtor
}

/// When a valid mandate is fetched next: within a day of the last fetch, at a time that differs between clients.
pub(crate) fn next_fetch(debtor: &Debtor, now: DateTime<Utc>) -> DateTime<Utc> {
    let spread = i64::try_from(debtor.client_id.as_u128() % SPREAD_MINUTES).unwrap_or_default();
    debtor.asked_at.unwrap_or(now) + FETCH_INTERVAL + TimeDelta::minutes(spread)
}

/// Marks the mandate with which the provider refused to collect as invalid, whatever its listed status is.
pub(crate) fn invalidate(mut mandates: Vec<Mandate>, refused: &str) -> Vec<Mandate> {
    for mandate in mandates.iter_mut().filter(|mandate| mandate.id == refused) {
        mandate.status = provider::MandateStatus::Invalid;
    }
    mandates
}

/// The current mandate while it is valid, otherwise the newest valid one, otherwise the newest pending one, otherwise
/// the newest.
fn choose<'a>(mandates: &'a [Mandate], current: &str) -> Option<&'a Mandate> {
    use provider::MandateStatus::{Pending, Valid};
    let in_use = mandates.iter().find(|mandate| mandate.id == current && mandate.status == Valid);
    let newest = |status| mandates.iter().find(|mandate| mandate.status == status);
    in_use.or_else(|| newest(Valid)).or_else(|| newest(Pending)).or(mandates.first())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chassis_base::AccountId;
    use provider::MandateStatus as Listed;
    use uuid::Uuid;

    fn debtor(mandate: MandateState) -> Debtor {
        Debtor {
            client_id: Uuid::nil(),
            provider: "sandbox".to_owned(),
            customer_id: "c".to_owned(),
            mandate_id: if mandate == MandateState::None { String::new() } else { "m1".to_owned() },
            mandate,
            verified_at: None,
            authorized_at: None,
            activated_at: None,
            asked_at: None,
            version: 1,
            updated_at: DateTime::UNIX_EPOCH,
        }
    }

    fn mandate(id: &str, status: Listed) -> Mandate {
        Mandate { id: id.to_owned(), status }
    }

    fn paid(purpose: Purpose) -> OnlinePayment {
        let account = AccountId::trust(Uuid::nil());
        let now = DateTime::UNIX_EPOCH;
        let new = OnlinePayment::new(Uuid::nil(), purpose, "sandbox", account, now);
        OnlinePayment { status: Status::Paid, mandate_id: "m1".to_owned(), ..new }
    }

    #[test]
    fn a_mandate_goes_from_none_to_active() {
        let steps = [
            (None, None, MandateStatus::None),
            (Some(MandateState::None), Some(Status::Requested), MandateStatus::Pending),
            (Some(MandateState::None), Some(Status::Open), MandateStatus::Pending),
            (Some(MandateState::None), Some(Status::Failed), MandateStatus::None),
            (Some(MandateState::None), Some(Status::Paid), MandateStatus::Verified),
            (Some(MandateState::Pending), Some(Status::Paid), MandateStatus::Verified),
            (Some(MandateState::Valid), Some(Status::Paid), MandateStatus::Authorized),
            (Some(MandateState::Valid), Some(Status::Open), MandateStatus::Authorized),
            (Some(MandateState::Invalid), Some(Status::Paid), MandateStatus::None),
            (Some(MandateState::Invalid), Some(Status::Open), MandateStatus::Pending),
        ];
        for (state, verification, expected) in steps {
            assert_eq!(
                status(state.map(debtor).as_ref(), verification),
                expected,
                "{state:?} {verification:?}"
            );
        }
        let active = apply_payment(
            &debtor(MandateState::Valid),
            &paid(Purpose::Collection),
            None,
            DateTime::UNIX_EPOCH,
        );
        assert_eq!(status(Some(&active), None), MandateStatus::Active);
    }

    #[test]
    fn a_collection_with_an_older_mandate_does_not_make_the_new_one_active() {
        let renewed = Debtor { mandate_id: "m2".to_owned(), ..debtor(MandateState::Valid) };
        let after = apply_payment(&renewed, &paid(Purpose::Collection), None, DateTime::UNIX_EPOCH);
        assert_eq!(after.activated_at, None);
    }

    #[test]
    fn the_mandate_in_use_stays_while_it_is_valid() {
        let all =
            [mandate("m3", Listed::Invalid), mandate("m2", Listed::Valid), mandate("m1", Listed::Valid)];
        let with = |known: &Debtor, all: &[Mandate]| {
            let report = MandateReport { mandates: all, at: DateTime::UNIX_EPOCH };
            let after =
                apply_payment(known, &paid(Purpose::Verification), Some(report), DateTime::UNIX_EPOCH);
            (after.mandate_id.clone(), after.mandate, after.authorized_at.is_some())
        };
        assert_eq!(with(&debtor(MandateState::Valid), &all), ("m1".to_owned(), MandateState::Valid, true));
        assert_eq!(
            with(&debtor(MandateState::Valid), &all[..2]),
            ("m2".to_owned(), MandateState::Valid, true)
        );
        assert_eq!(
            with(&debtor(MandateState::None), &all[..1]),
            ("m3".to_owned(), MandateState::Invalid, false)
        );
        let pending = [all[0].clone(), mandate("m4", Listed::Pending)];
        assert_eq!(
            with(&debtor(MandateState::None), &pending),
            ("m4".to_owned(), MandateState::Pending, false)
        );
        assert_eq!(with(&debtor(MandateState::None), &[]), (String::new(), MandateState::None, false));
    }

    #[test]
    fn a_mandate_that_is_gone_or_refused_is_no_longer_valid() {
        let at = DateTime::UNIX_EPOCH;
        let known = debtor(MandateState::Valid);
        let gone = apply_report(&known, MandateReport { mandates: &[], at });
        assert_eq!((gone.mandate, gone.mandate_id.as_str()), (MandateState::Invalid, "m1"));
        let refused = invalidate(vec![mandate("m1", Listed::Valid)], "m1");
        assert_eq!(
            apply_report(&known, MandateReport { mandates: &refused, at }).mandate,
            MandateState::Invalid
        );
        let other = invalidate(vec![mandate("m2", Listed::Valid), mandate("m1", Listed::Valid)], "m1");
        let renewed = apply_report(&known, MandateReport { mandates: &other, at });
        assert_eq!((renewed.mandate, renewed.mandate_id.as_str()), (MandateState::Valid, "m2"));
        // An answer that was overtaken by a later one.
        let late = [mandate("m1", Listed::Valid)];
        let newer = Debtor { asked_at: Some(at + TimeDelta::seconds(1)), ..gone };
        assert_eq!(apply_report(&newer, MandateReport { mandates: &late, at }), newer);
    }

    #[test]
    fn every_valid_mandate_is_fetched_within_a_day() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(9);
        for client in 0..1_000 {
            let known = Debtor { client_id: Uuid::from_u128(client * 7919), ..debtor(MandateState::Valid) };
            let next = next_fetch(&Debtor { asked_at: Some(now), ..known }, now);
            assert!(next > now && next < now + TimeDelta::hours(23), "{next}");
        }
    }
}
