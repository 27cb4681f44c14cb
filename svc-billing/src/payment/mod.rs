//! The payments of invoices. What an invoice owes because of them is computed in `document`; payments through a
//! provider are recorded here by `processor`.

pub(crate) mod operations;
pub(crate) mod rpc;
mod rules;
pub(crate) mod store;

pub(crate) use operations::{AUDIT_KIND, record_provider_payment};

use chassis_base::time::timestamp;
use chassis_data::Listing;
use chrono::{DateTime, NaiveDate, Utc};
use proto::billing::{self, PaymentMeta, PaymentMethod, PaymentStatus, PaymentType};
use rust_decimal::Decimal;
use uuid::Uuid;

/// The counter of all payments.
const LIST: &str = "payment";
/// What lists filter by.
const STATUS_COLUMN: &str = "status";
const KIND_COLUMN: &str = "type";
const METHOD_COLUMN: &str = "method";

/// A payment as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Payment {
    pub id: Uuid,
    pub invoice: Uuid,
    /// Counts its changes from 1.
    pub version: i64,
    pub amount: Decimal,
    pub date: NaiveDate,
    pub status: PaymentStatus,
    pub kind: PaymentType,
    pub method: PaymentMethod,
    pub external_id: String,
    pub provider: String,
    /// What the contract calls `payment_data`: JSON text; empty when nothing was sent.
    pub sent_data: String,
    pub feedback_data: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

impl Payment {
    /// The lists that show it.
    fn listing(&self) -> Listing {
        Listing::new(self.created_at, self.id)
            .of_prepared(LIST)
            .with(LIST, STATUS_COLUMN, &store::status_name(self.status))
            .with(LIST, KIND_COLUMN, &store::kind_name(self.kind))
            .with(LIST, METHOD_COLUMN, &store::method_name(self.method))
    }
}

impl From<Payment> for billing::Payment {
    fn from(payment: Payment) -> Self {
        let object = |text: String| if text.is_empty() { "{}".to_owned() } else { text };
        Self {
            id: payment.id.to_string(),
            amount: payment.amount.to_string(),
            date: payment.date.to_string(),
            status: payment.status.into(),
            r#type: payment.kind.into(),
            method: payment.method.into(),
            external_id: payment.external_id,
            provider: payment.provider,
            meta: Some(PaymentMeta {
                payment_data: object(payment.sent_data),
                feedback_data: object(payment.feedback_data),
                created_at: Some(timestamp(payment.created_at)),
                updated_at: Some(timestamp(payment.updated_at)),
                version: payment.version,
                invoice_id: payment.invoice.to_string(),
            }),
        }
    }
}
