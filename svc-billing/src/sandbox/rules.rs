//! The buttons of a sandbox payment, and what they change. Pure.

use chrono::{DateTime, Utc};
use provider::{MandateStatus, Status};
use rust_decimal::Decimal;

use super::{Mandate, Payment};

/// A button on the page of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Authorise,
    Refuse,
    Expire,
    /// Lets a pending collection succeed.
    Settle,
    /// Lets a pending collection fail.
    Fail,
    ChargeBack,
    Refund,
    /// Lets the next collection with this mandate fail.
    RefuseNext,
    /// Takes `RefuseNext` back.
    AcceptNext,
    Revoke,
}

impl Act {
    pub(crate) const ALL: [(Self, &'static str); 10] = [
        (Self::Authorise, "authorise"),
        (Self::Refuse, "refuse"),
        (Self::Expire, "expire"),
        (Self::Settle, "settle"),
        (Self::Fail, "fail"),
        (Self::ChargeBack, "charge_back"),
        (Self::Refund, "refund"),
        (Self::RefuseNext, "refuse_next"),
        (Self::AcceptNext, "accept_next"),
        (Self::Revoke, "revoke"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(act, _)| *act == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, of)| *of == name).map(|(act, _)| act)
    }

    /// Whether it changes the mandate and not the payment.
    pub(crate) fn changes_mandate(self) -> bool {
        matches!(self, Self::RefuseNext | Self::AcceptNext | Self::Revoke)
    }

    /// Whether it ends the checkout, after which the payer returns to the merchant.
    pub(crate) fn ends_checkout(self) -> bool {
        matches!(self, Self::Authorise | Self::Refuse | Self::Expire)
    }
}

/// The buttons that the page of a payment has.
pub(crate) fn offered(payment: &Payment, mandate: Option<&Mandate>) -> Vec<Act> {
    let mut acts = match payment.status {
        Status::Open => vec![Act::Authorise, Act::Refuse, Act::Expire],
        Status::Pending => vec![Act::Settle, Act::Fail],
        Status::Paid if payment.remaining() > Decimal::ZERO => vec![Act::ChargeBack, Act::Refund],
        _ => Vec::new(),
    };
    if let Some(mandate) = mandate.filter(|mandate| mandate.status == MandateStatus::Valid) {
        acts.push(if mandate.refuses_next { Act::AcceptNext } else { Act::RefuseNext });
        acts.push(Act::Revoke);
    }
    acts
}

/// The payment after a button. Buttons that change the mandate leave the payment as it is.
pub(crate) fn after(payment: &Payment, act: Act, now: DateTime<Utc>) -> Payment {
    let mut after = payment.clone();
    match act {
        Act::Authorise | Act::Settle => {
            after.status = Status::Paid;
            after.paid_at = Some(now);
        }
        Act::Refuse => {
            after.status = Status::Failed;
            "The payer refused.".clone_into(&mut after.failure);
        }
        Act::Fail => {
            after.status = Status::Failed;
            "The bank refused the collection: insufficient funds.".clone_into(&mut after.failure);
        }
        Act::Expire => after.status = Status::Expired,
        Act::ChargeBack => after.charged_back += payment.remaining(),
        Act::Refund => after.refunded += payment.remaining(),
        Act::RefuseNext | Act::AcceptNext | Act::Revoke => {}
    }
    after
}

/// What the worker does with a payment whose time is over.
pub(crate) fn end(payment: &Payment) -> Option<Act> {
    match payment.status {
        Status::Open => Some(Act::Expire),
        Status::Pending if payment.fails => Some(Act::Fail),
        Status::Pending => Some(Act::Settle),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::super::Sequence;
    use super::*;

    fn payment(status: Status) -> Payment {
        Payment {
            id: Uuid::nil(),
            reference: String::new(),
            sequence: Sequence::Recurring,
            customer_id: None,
            mandate_id: None,
            amount: 10.into(),
            currency: "EUR".to_owned(),
            description: String::new(),
            return_url: String::new(),
            webhook_url: String::new(),
            status,
            refunded: Decimal::ZERO,
            charged_back: Decimal::ZERO,
            failure: String::new(),
            paid_at: None,
            fails: false,
            created_at: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_page_offers_what_can_happen_to_its_payment_and_no_more() {
        let offered = |status| offered(&payment(status), None);
        assert_eq!(offered(Status::Open), [Act::Authorise, Act::Refuse, Act::Expire]);
        assert_eq!(offered(Status::Pending), [Act::Settle, Act::Fail]);
        assert_eq!(offered(Status::Paid), [Act::ChargeBack, Act::Refund]);
        for ended in [Status::Failed, Status::Canceled, Status::Expired] {
            assert_eq!(offered(ended), []);
        }
        let back = after(&payment(Status::Paid), Act::ChargeBack, DateTime::UNIX_EPOCH);
        assert_eq!((back.charged_back, super::offered(&back, None)), (10.into(), Vec::new()));
    }

    #[test]
    fn a_collection_left_alone_is_paid_unless_it_is_to_fail() {
        assert_eq!(end(&payment(Status::Pending)), Some(Act::Settle));
        assert_eq!(end(&Payment { fails: true, ..payment(Status::Pending) }), Some(Act::Fail));
        assert_eq!(end(&payment(Status::Open)), Some(Act::Expire));
        assert_eq!(end(&payment(Status::Paid)), None);
    }

    #[test]
    fn every_button_has_a_name_of_its_own() {
        for (act, name) in Act::ALL {
            assert_eq!((act.name(), Act::from_name(name)), (name, Some(act)));
        }
        assert_eq!(Act::from_name("nonsense"), None);
    }
}
