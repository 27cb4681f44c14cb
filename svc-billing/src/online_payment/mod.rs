//! Online payments, as they are stored: the record of each payment through a provider, and the queue of commands that
//! are still to be sent to the provider. Owns the tables `online_payment` and `wish` (the queue of commands).
//!
//! This folder knows neither invoices nor how a provider is called, so that documents and payments may request a
//! cancellation from it. The calls, and the life of an online payment as a whole, are in [`crate::processor`].

mod command;
pub(crate) mod operations;
pub(crate) mod rules;
pub(crate) mod store;

use chassis_base::AccountId;
use chassis_rpc::Link;
use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use uuid::Uuid;

pub(crate) use command::{CommandKind, NewCommand, ProviderCommand, TAKEOVER_DELAY};

use crate::error::Error;

/// The name of a provider, as input of a transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProviderName(pub &'static str);

/// What a payment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A client pays a small amount, which grants a mandate.
    Verification,
    /// The payer pays an invoice on its page.
    Checkout,
    /// An invoice is collected by mandate.
    Collection,
}

impl Purpose {
    const NAMES: [(Self, &'static str); 3] = [
        (Self::Verification, "verification"),
        (Self::Checkout, "checkout"),
        (Self::Collection, "collection"),
    ];

    /// The name in the database.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(purpose, _)| *purpose == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(purpose, _)| purpose)
    }
}

/// The status of a payment at its provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Stored here; the provider has not confirmed its creation yet.
    Requested,
    /// Waits for its payer.
    Open,
    Pending,
    Authorized,
    Paid,
    Canceled,
    Expired,
    Failed,
}

impl Status {
    const NAMES: [(Self, &'static str); 8] = [
        (Self::Requested, "wanted"),
        (Self::Open, "open"),
        (Self::Pending, "pending"),
        (Self::Authorized, "authorized"),
        (Self::Paid, "paid"),
        (Self::Canceled, "canceled"),
        (Self::Expired, "expired"),
        (Self::Failed, "failed"),
    ];

    /// The name in the database and in `verification_status` of the contract.
    pub(crate) fn name(self) -> &'static str {
        Self::NAMES.into_iter().find(|(status, _)| *status == self).map_or("", |(_, name)| name)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(_, known)| *known == name).map(|(status, _)| status)
    }

    /// Whether it may still be paid.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Self::Requested | Self::Open | Self::Pending | Self::Authorized)
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
pub(crate) struct OnlinePayment {
    pub id: Uuid,
    pub purpose: Purpose,
    pub client_id: Option<Uuid>,
    pub document_id: Option<Uuid>,
    pub provider: String,
    /// The secret in the URLs of its page and its webhook.
    pub token: [u8; 16],
    pub amount: Decimal,
    pub currency: String,
    pub description: String,
    pub customer_id: String,
    pub mandate_id: String,
    pub return_url: String,
    pub status: Status,
    /// Whether its cancellation was requested. The provider decides whether it is canceled or was paid before.
    pub closing: bool,
    /// The provider's id.
    pub external_id: String,
    pub checkout_url: String,
    pub refunded: Decimal,
    pub charged_back: Decimal,
    pub failure: String,
    pub paid_at: Option<DateTime<Utc>>,
    /// When the provider was asked for the state that is stored.
    pub asked_at: DateTime<Utc>,
    pub created_at: DateTime<Utc>,
}

impl OnlinePayment {
    /// A payment that is about to be requested from the provider; the caller fills in the rest.
    pub(crate) fn new(
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
            status: Status::Requested,
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
}

/// Our id of a payment or a client, as the provider stores it. It contains the account, so that the payments of
/// several accounts can share one profile at the provider.
pub(crate) fn reference(account: AccountId, id: Uuid) -> String {
    format!("{account}/{id}")
}

/// The inverse of [`reference`].
pub(crate) fn parse_reference(reference: &str) -> Option<(AccountId, Uuid)> {
    let (account, id) = reference.split_once('/')?;
    Some((AccountId::trust(chassis_base::id::parse(account)?), chassis_base::id::parse(id)?))
}

/// The error of a call for which the provider would have to answer and does not. The command stays in the queue.
pub(crate) fn provider_unavailable() -> Error {
    let status = chassis_base::error::status::unavailable(
        "The payment provider cannot be reached right now. Repeat the request in a moment.",
    );
    chassis_base::Error::Peer(Box::new(status)).into()
}
