//! Payments made through a provider. A wish is written first, the provider is called with no transaction open, and what
//! came of it is written last; a wish whose answer never came is taken up again by a worker. Says nothing about why
//! something is collected: that is `debit`'s.

mod closed;
mod note;
mod page;
pub mod pay;
mod perform;
pub mod rpc;
mod rules;
pub mod store;
pub mod wish;
mod worker;

use chassis_base::AccountId;
use chassis_rpc::Link;
use chrono::{DateTime, Utc};
use proto::billing::{PaymentMethod, PaymentType};
use rust_decimal::Decimal;
use uuid::Uuid;

pub use closed::{Closed, NONE};
pub use note::{abandon, begin, follow_invoice, withdraw};
pub use perform::{Hand, Till, away};
pub use worker::worker;

use crate::payment::Payment;

#[cfg(test)]
mod lost_tests;

/// The name of a provider.
#[derive(Clone, Copy, Debug)]
pub struct By(pub &'static str);

/// What a payment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Gives a mandate.
    Verification,
    /// Pays an invoice on its page.
    Checkout,
    /// Collects an invoice by mandate.
    Collection,
}

impl Purpose {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Verification, "verification"),
        (Self::Checkout, "checkout"),
        (Self::Collection, "collection"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(purpose, _)| *purpose == self).map_or("", |(_, name)| name)
    }

    /// The opposite of [`Purpose::name`]. The database knows no other names.
    fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|(_, of)| *of == name).map_or(Self::Checkout, |(purpose, _)| purpose)
    }
}

/// Where a payment stands at its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Asked for; the provider has not answered yet.
    Wanted,
    Open,
    Pending,
    Authorized,
    Paid,
    Canceled,
    Expired,
    Failed,
}

impl Status {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Wanted, "wanted"),
        (Self::Open, "open"),
        (Self::Pending, "pending"),
        (Self::Authorized, "authorized"),
        (Self::Paid, "paid"),
        (Self::Canceled, "canceled"),
        (Self::Expired, "expired"),
        (Self::Failed, "failed"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }

    /// The opposite of [`Status::name`].
    pub fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|(_, of)| *of == name).map_or(Self::Failed, |(status, _)| status)
    }

    /// Whether it may still be paid.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Wanted | Self::Open | Self::Pending | Self::Authorized)
    }
}

impl From<provider::Status> for Status {
    fn from(status: provider::Status) -> Self {
        match status {
            provider::Status::Open => Self::Open,
            provider::Status::Pending => Self::Pending,
            provider::Status::Authorized => Self::Authorized,
            provider::Status::Paid => Self::Paid,
            provider::Status::Canceled => Self::Canceled,
            provider::Status::Expired => Self::Expired,
            provider::Status::Failed => Self::Failed,
        }
    }
}

/// A payment through a provider, as it is stored. Texts that are not known are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlinePayment {
    pub id: Uuid,
    pub purpose: Purpose,
    pub client_id: Option<Uuid>,
    pub document_id: Option<Uuid>,
    pub provider: String,
    pub token: [u8; 16],
    pub amount: Decimal,
    pub currency: String,
    pub description: String,
    pub customer_id: String,
    pub mandate_id: String,
    pub return_url: String,
    pub status: Status,
    /// Whether we want it canceled.
    pub closing: bool,
    /// The provider's id.
    pub external_id: String,
    pub checkout_url: String,
    pub refunded: Decimal,
    pub charged_back: Decimal,
    pub failure: String,
    pub paid_at: Option<DateTime<Utc>>,
    /// When the provider was asked for what is known.
    pub asked_at: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
}

impl OnlinePayment {
    /// One that is about to be asked for. `currency` is that of the account or the invoice.
    pub fn wanted(
        id: Uuid,
        purpose: Purpose,
        provider: &str,
        account: AccountId,
        now: DateTime<Utc>,
    ) -> Self {
        Self {
            id,
            purpose,
            client_id: None,
            document_id: None,
            provider: provider.to_owned(),
            token: Link::random(account).secret,
            amount: Decimal::ZERO,
            currency: String::new(),
            description: String::new(),
            customer_id: String::new(),
            mandate_id: String::new(),
            return_url: String::new(),
            status: Status::Wanted,
            closing: false,
            external_id: String::new(),
            checkout_url: String::new(),
            refunded: Decimal::ZERO,
            charged_back: Decimal::ZERO,
            failure: String::new(),
            paid_at: None,
            asked_at: now,
            created_at: now,
        }
    }

    /// How the provider knows it as ours. Names the account, so that ids of several accounts can live at one provider.
    pub fn reference(&self, account: AccountId) -> String {
        reference(account, self.id)
    }
}

pub fn reference(account: AccountId, id: Uuid) -> String {
    format!("{account}/{id}")
}

/// The opposite of [`reference`].
pub fn referred(reference: &str) -> Option<(AccountId, Uuid)> {
    let (account, id) = reference.split_once('/')?;
    Some((AccountId::trust(chassis_base::id::parse(account)?), chassis_base::id::parse(id)?))
}

/// A payment as the invoice shows it. `known` is what it showed before.
fn record(
    online: &OnlinePayment,
    known: Option<&Payment>,
    zone: chrono_tz::Tz,
    now: DateTime<Utc>,
) -> Payment {
    let (status, amount) = rules::shown(online);
    let day = online.paid_at.unwrap_or(online.created_at).with_timezone(&zone).date_naive();
    Payment {
        id: online.id,
        amount,
        date: day,
        status,
        kind: PaymentType::Online,
        method: match online.purpose {
            Purpose::Collection => PaymentMethod::Banktransfer,
            Purpose::Checkout | Purpose::Verification => PaymentMethod::Ideal,
        },
        external_id: online.external_id.clone(),
        provider: online.provider.clone(),
        sent_data: known.map(|known| known.sent_data.clone()).unwrap_or_default(),
        feedback_data: rules::feedback(online),
        created_at: known.map_or(now, |known| known.created_at),
        updated_at: now,
    }
}
