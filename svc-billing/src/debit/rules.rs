//! What is made of mandates. Pure.

use chrono::{DateTime, TimeDelta, Utc};
use proto::billing::MandateStatus;
use provider::Mandate;

use super::{Debtor, Given};
use crate::online::{OnlinePayment, Purpose, Status};

/// How long a valid mandate is believed in without asking; up to so many minutes more.
const LOOK_INTERVAL: TimeDelta = TimeDelta::hours(18);
const SPREAD_MINUTES: u128 = 240;

/// Where a client's mandate stands. A valid one counts, whatever else is asked of the client.
pub fn status(debtor: Option<&Debtor>, verification: Option<Status>) -> MandateStatus {
    let given = debtor.map_or(Given::None, |debtor| debtor.mandate);
    match (given, verification) {
        (Given::Valid, _) if debtor.is_some_and(|debtor| debtor.activated_at.is_some()) => {
            MandateStatus::Active
        }
        (Given::Valid, _) => MandateStatus::Authorized,
        (_, Some(status)) if status.is_open() => MandateStatus::Pending,
        (Given::None | Given::Pending, Some(Status::Paid)) => MandateStatus::Verified,
        _ => MandateStatus::None,
    }
}

pub fn is_authorized(status: MandateStatus) -> bool {
    matches!(status, MandateStatus::Authorized | MandateStatus::Active)
}

/// What a provider answered when it was asked for the mandates of a client.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// Newest first.
    pub mandates: &'a [Mandate],
    /// When it was asked.
    pub at: DateTime<Utc>,
}

/// A client after a payment of theirs, and perhaps their mandates, became known.
pub fn learn(
    known: &Debtor,
    payment: &OnlinePayment,
    answered: Option<Answered<'_>>,
    now: DateTime<Utc>,
) -> Debtor {
    let mut learnt = known.clone();
    let paid = payment.status == Status::Paid;
    if paid && payment.purpose == Purpose::Verification {
        learnt.verified_at = learnt.verified_at.or(payment.paid_at).or(Some(now));
    }
    if let Some(answered) = answered {
        learnt = told(&learnt, answered);
    }
    let collected = paid && payment.purpose == Purpose::Collection && payment.mandate_id == learnt.mandate_id;
    if collected {
        learnt.activated_at = learnt.activated_at.or(payment.paid_at).or(Some(now));
    }
    learnt
}

/// A client after its provider was asked for its mandates. Answers can come late and in any order: an older one than the
/// latest tells nothing.
pub fn told(known: &Debtor, answered: Answered<'_>) -> Debtor {
    let mut learnt = known.clone();
    if known.asked_at.is_some_and(|asked| asked > answered.at) {
        return learnt;
    }
    learnt.asked_at = Some(answered.at);
    match chosen(answered.mandates, &known.mandate_id) {
        Some(mandate) => {
            if mandate.id != known.mandate_id {
                (learnt.authorized_at, learnt.activated_at) = (None, None);
            }
            learnt.mandate_id.clone_from(&mandate.id);
            learnt.mandate = given(mandate);
            if learnt.mandate == Given::Valid {
                learnt.authorized_at = learnt.authorized_at.or(Some(answered.at));
            }
        }
        // It was there, and is gone.
        None if !known.mandate_id.is_empty() => learnt.mandate = Given::Invalid,
        None => {}
    }
    learnt
}

/// When to ask for a valid mandate again: within a day of the last answer, and not for all at the same time.
pub fn next_look(debtor: &Debtor, now: DateTime<Utc>) -> DateTime<Utc> {
    let spread = i64::try_from(debtor.client_id.as_u128() % SPREAD_MINUTES).unwrap_or_default();
    debtor.asked_at.unwrap_or(now) + LOOK_INTERVAL + TimeDelta::minutes(spread)
}

/// The mandates of a client after the provider refused to collect with one of them: whatever else it says of that one, it
/// is not valid.
pub fn without(mut mandates: Vec<Mandate>, refused: &str) -> Vec<Mandate> {
    for mandate in mandates.iter_mut().filter(|mandate| mandate.id == refused) {
        mandate.status = provider::MandateStatus::Invalid;
    }
    mandates
}

/// The one in use while it is valid, else the newest that is, else the newest that may become so, else the newest.
fn chosen<'a>(mandates: &'a [Mandate], current: &str) -> Option<&'a Mandate> {
    let valid = |mandate: &&Mandate| given(mandate) == Given::Valid;
    let in_use = mandates.iter().find(|mandate| mandate.id == current).filter(valid);
    let newest = |wanted: Given| mandates.iter().find(|mandate| given(mandate) == wanted);
    in_use.or_else(|| newest(Given::Valid)).or_else(|| newest(Given::Pending)).or(mandates.first())
}

fn given(mandate: &Mandate) -> Given {
    match mandate.status {
        provider::MandateStatus::Pending => Given::Pending,
        provider::MandateStatus::Valid => Given::Valid,
        provider::MandateStatus::Invalid => Given::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chassis_base::AccountId;
    use provider::MandateStatus as Told;
    use uuid::Uuid;

    fn debtor(mandate: Given) -> Debtor {
        Debtor {
            client_id: Uuid::nil(),
            provider: "sandbox".to_owned(),
            customer_id: "c".to_owned(),
            mandate_id: if mandate == Given::None { String::new() } else { "m1".to_owned() },
            mandate,
            verified_at: None,
            authorized_at: None,
            activated_at: None,
            asked_at: None,
        }
    }

    fn mandate(id: &str, status: Told) -> Mandate {
        Mandate { id: id.to_owned(), status }
    }

    fn paid(purpose: Purpose) -> OnlinePayment {
        let account = AccountId::trust(Uuid::nil());
        let now = DateTime::UNIX_EPOCH;
        let new = OnlinePayment::wanted(Uuid::nil(), purpose, "sandbox", account, now);
        OnlinePayment { status: Status::Paid, mandate_id: "m1".to_owned(), ..new }
    }

    #[test]
    fn a_mandate_goes_from_none_to_active() {
        let steps = [
            (None, None, MandateStatus::None),
            (Some(Given::None), Some(Status::Wanted), MandateStatus::Pending),
            (Some(Given::None), Some(Status::Open), MandateStatus::Pending),
            (Some(Given::None), Some(Status::Failed), MandateStatus::None),
            (Some(Given::None), Some(Status::Paid), MandateStatus::Verified),
            (Some(Given::Pending), Some(Status::Paid), MandateStatus::Verified),
            (Some(Given::Valid), Some(Status::Paid), MandateStatus::Authorized),
            (Some(Given::Valid), Some(Status::Open), MandateStatus::Authorized),
            (Some(Given::Invalid), Some(Status::Paid), MandateStatus::None),
            (Some(Given::Invalid), Some(Status::Open), MandateStatus::Pending),
        ];
        for (given, verification, expected) in steps {
            assert_eq!(
                status(given.map(debtor).as_ref(), verification),
                expected,
                "{given:?} {verification:?}"
            );
        }
        let active = learn(&debtor(Given::Valid), &paid(Purpose::Collection), None, DateTime::UNIX_EPOCH);
        assert_eq!(status(Some(&active), None), MandateStatus::Active);
    }

    #[test]
    fn a_collection_with_an_older_mandate_does_not_make_the_new_one_active() {
        let renewed = Debtor { mandate_id: "m2".to_owned(), ..debtor(Given::Valid) };
        let learnt = learn(&renewed, &paid(Purpose::Collection), None, DateTime::UNIX_EPOCH);
        assert_eq!(learnt.activated_at, None);
    }

    #[test]
    fn the_mandate_in_use_stays_while_it_is_valid() {
        let all = [mandate("m3", Told::Invalid), mandate("m2", Told::Valid), mandate("m1", Told::Valid)];
        let with = |known: &Debtor, all: &[Mandate]| {
            let answered = Answered { mandates: all, at: DateTime::UNIX_EPOCH };
            let learnt = learn(known, &paid(Purpose::Verification), Some(answered), DateTime::UNIX_EPOCH);
            (learnt.mandate_id.clone(), learnt.mandate, learnt.authorized_at.is_some())
        };
        assert_eq!(with(&debtor(Given::Valid), &all), ("m1".to_owned(), Given::Valid, true));
        assert_eq!(with(&debtor(Given::Valid), &all[..2]), ("m2".to_owned(), Given::Valid, true));
        assert_eq!(with(&debtor(Given::None), &all[..1]), ("m3".to_owned(), Given::Invalid, false));
        let pending = [all[0].clone(), mandate("m4", Told::Pending)];
        assert_eq!(with(&debtor(Given::None), &pending), ("m4".to_owned(), Given::Pending, false));
        assert_eq!(with(&debtor(Given::None), &[]), (String::new(), Given::None, false));
    }

    #[test]
    fn a_mandate_that_is_gone_or_refused_is_no_longer_valid() {
        let at = DateTime::UNIX_EPOCH;
        let known = debtor(Given::Valid);
        let gone = told(&known, Answered { mandates: &[], at });
        assert_eq!((gone.mandate, gone.mandate_id.as_str()), (Given::Invalid, "m1"));
        let refused = without(vec![mandate("m1", Told::Valid)], "m1");
        assert_eq!(told(&known, Answered { mandates: &refused, at }).mandate, Given::Invalid);
        let other = without(vec![mandate("m2", Told::Valid), mandate("m1", Told::Valid)], "m1");
        let renewed = told(&known, Answered { mandates: &other, at });
        assert_eq!((renewed.mandate, renewed.mandate_id.as_str()), (Given::Valid, "m2"));
        // An answer that was overtaken by a later one.
        let late = [mandate("m1", Told::Valid)];
        let newer = Debtor { asked_at: Some(at + TimeDelta::seconds(1)), ..gone };
        assert_eq!(told(&newer, Answered { mandates: &late, at }), newer);
    }

    #[test]
    fn every_valid_mandate_is_asked_for_within_a_day() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(9);
        for client in 0..1_000 {
            let known = Debtor { client_id: Uuid::from_u128(client * 7919), ..debtor(Given::Valid) };
            let next = next_look(&Debtor { asked_at: Some(now), ..known }, now);
            assert!(next > now && next < now + TimeDelta::hours(23), "{next}");
        }
    }
}
