//! Converts between Mollie's JSON and the types of this crate. Fields that are not needed are not read, so that new
//! fields have no effect. An unknown value makes the whole answer unreadable: a guess would be a guess about money.

use chrono::{DateTime, Utc};
use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::money::Money;
use crate::{
    Fault, IdempotencyKey, Mandate, MandateStatus, NewCustomer, NewPayment, Payment, Refund, Sequence, Status,
};

/// The longest description that Mollie accepts, in characters.
const MAX_DESCRIPTION: usize = 255;
const MAX_ID: usize = 64;

/// Whether a text has the form of a Mollie id with this prefix, for example `tr_7UhSN1zuXS`. Only such a text is put
/// into a URL.
pub(super) fn is_id(text: &str, prefix: &str) -> bool {
    let rest = text.strip_prefix(prefix).unwrap_or_default();
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    !rest.is_empty() && text.len() <= MAX_ID && rest.chars().all(plain)
}

pub(super) fn new_customer(customer: &NewCustomer) -> Value {
    json!({
        "name": customer.name,
        "email": customer.email,
        "metadata": { "reference": customer.reference },
    })
}

pub(super) fn new_payment(payment: &NewPayment) -> Result<Value, Fault> {
    let mut body = json!({
        "amount": money(payment.amount, &payment.currency)?,
        "description": payment.description.chars().take(MAX_DESCRIPTION).collect::<String>(),
        "webhookUrl": payment.webhook_url,
        "metadata": { "reference": payment.reference },
    });
    if let Some(return_url) = &payment.return_url {
        body["redirectUrl"] = json!(return_url);
    }
    match &payment.sequence {
        Sequence::OneOff => body["sequenceType"] = json!("oneoff"),
        Sequence::First { customer } => {
            body["sequenceType"] = json!("first");
            body["customerId"] = json!(customer);
        }
        Sequence::Recurring { customer, mandate } => {
            body["sequenceType"] = json!("recurring");
            body["customerId"] = json!(customer);
            body["mandateId"] = json!(mandate);
        }
    }
    Ok(body)
}

/// The key is stored in the refund itself, because Mollie discards the key of the header after an hour.
pub(super) fn new_refund(key: &IdempotencyKey, amount: Decimal, currency: &str) -> Result<Value, Fault> {
    Ok(json!({ "amount": money(amount, currency)?, "metadata": { "key": key.0 } }))
}

fn money(amount: Decimal, currency: &str) -> Result<Money, Fault> {
    Money::new(amount, currency).ok_or_else(|| Fault::Refused {
        detail: format!(
            "{amount} {currency} is not an amount that can be paid; use no more decimals than {currency} has"
        ),
        field: Some("amount".to_owned()),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawPayment {
    id: String,
    status: String,
    amount: Money,
    amount_refunded: Option<Money>,
    amount_charged_back: Option<Money>,
    #[serde(default)]
    metadata: Value,
    customer_id: Option<String>,
    mandate_id: Option<String>,
    paid_at: Option<DateTime<Utc>>,
    #[serde(default)]
    status_reason: Value,
    #[serde(default)]
    details: Value,
    #[serde(default, rename = "_links")]
    links: Value,
}

/// The fields that a search through the list of payments compares; other fields are not read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ListEntry {
    pub created_at: DateTime<Utc>,
    #[serde(default)]
    metadata: Value,
}

impl ListEntry {
    pub(super) fn has_reference(&self, reference: &str) -> bool {
        self.metadata["reference"] == reference
    }
}

pub(super) fn payment(body: Value) -> Result<Payment, Fault> {
    let raw: RawPayment = read(body)?;
    // Mollie's names are the ones of this crate.
    let status = Status::from_name(&raw.status)
        .ok_or_else(|| unexpected_answer("a payment has a status that is not known"))?;
    let reasons = [
        &raw.details["bankReason"],
        &raw.details["failureMessage"],
        &raw.details["failureReason"],
        &raw.status_reason["message"],
    ];
    Ok(Payment {
        reference: text(&raw.metadata["reference"]).unwrap_or_default(),
        status,
        amount: amount(&raw.amount)?,
        refunded: sum(raw.amount_refunded.as_ref())?,
        charged_back: sum(raw.amount_charged_back.as_ref())?,
        customer: raw.customer_id,
        mandate: raw.mandate_id,
        checkout_url: text(&raw.links["checkout"]["href"]),
        paid_at: raw.paid_at,
        failure: reasons.into_iter().find_map(text),
        id: checked(raw.id, "tr_")?,
    })
}

pub(super) fn customer_id(body: Value) -> Result<String, Fault> {
    #[derive(Deserialize)]
    struct RawCustomer {
        id: String,
    }
    checked(read::<RawCustomer>(body)?.id, "cst_")
}

/// A mandate and the time of its creation.
pub(super) fn mandate(body: Value) -> Result<(DateTime<Utc>, Mandate), Fault> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct RawMandate {
        id: String,
        status: String,
        created_at: DateTime<Utc>,
    }
    let raw: RawMandate = read(body)?;
    let status = MandateStatus::from_name(&raw.status)
        .ok_or_else(|| unexpected_answer("a mandate has a status that is not known"))?;
    Ok((raw.created_at, Mandate { id: checked(raw.id, "mdt_")?, status }))
}

/// The currency of a payment, and the refund that was created with this key, if there is one.
pub(super) fn refunds(body: &Value, key: &IdempotencyKey) -> Result<(String, Option<Refund>), Fault> {
    let currency =
        text(&body["amount"]["currency"]).ok_or_else(|| unexpected_answer("a payment has no currency"))?;
    let refunds = body["_embedded"]["refunds"].as_array().map(Vec::as_slice).unwrap_or_default();
    let same = refunds.iter().find(|refund| refund["metadata"]["key"] == key.0.as_str());
    Ok((currency, same.cloned().map(refund).transpose()?))
}

pub(super) fn refund(body: Value) -> Result<Refund, Fault> {
    #[derive(Deserialize)]
    struct RawRefund {
        id: String,
        amount: Money,
    }
    let raw: RawRefund = read(body)?;
    Ok(Refund { amount: amount(&raw.amount)?, id: checked(raw.id, "re_")? })
}

/// The entries of one page of a list, and the id of the first entry of the next page.
pub(super) fn page(mut body: Value, name: &str) -> Result<(Vec<Value>, Option<String>), Fault> {
    let entries = body.get_mut("_embedded").and_then(|lists| lists.get_mut(name)).map(Value::take);
    let Some(Value::Array(entries)) = entries else { return Err(unexpected_answer("a list has no entries")) };
    // Only the cursor is taken from the link, so that the API key is sent to no host other than the configured one.
    let next = match text(&body["_links"]["next"]["href"]) {
        None => None,
        Some(link) => {
            Some(cursor(&link).ok_or_else(|| unexpected_answer("a list has a next page without a cursor"))?)
        }
    };
    Ok((entries, next))
}

fn cursor(link: &str) -> Option<String> {
    let link = reqwest::Url::parse(link).ok()?;
    let from = link.query_pairs().find(|(name, _)| name == "from")?.1.into_owned();
    is_id(&from, "").then_some(from)
}

pub(super) fn read<T: DeserializeOwned>(body: Value) -> Result<T, Fault> {
    serde_json::from_value(body).map_err(|error| unexpected_answer(&error.to_string()))
}

pub(super) fn unexpected_answer(detail: &str) -> Fault {
    Fault::OutcomeUnknown { detail: detail.to_owned() }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn amount(money: &Money) -> Result<Decimal, Fault> {
    money.amount().ok_or_else(|| unexpected_answer("an amount is not a number"))
}

fn sum(money: Option<&Money>) -> Result<Decimal, Fault> {
    money.map_or(Ok(Decimal::ZERO), amount)
}

fn checked(id: String, prefix: &str) -> Result<String, Fault> {
    if is_id(&id, prefix) { Ok(id) } else { Err(unexpected_answer("an id does not have the form of one")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body() -> Value {
        json!({
            "resource": "payment", "id": "tr_1", "status": "paid", "amount": { "currency": "EUR", "value": "10.00" },
            "createdAt": "2026-11-01T10:00:00+00:00", "paidAt": "2026-11-01T11:00:00+01:00", "metadata": null,
        })
    }

    fn changed(name: &str, value: Value) -> Result<Payment, Fault> {
        let mut body = body();
        body[name] = value;
        payment(body)
    }

    #[test]
    fn a_payment_that_is_not_ours_has_no_reference() {
        for metadata in [json!(null), json!("a text"), json!(7), json!([]), json!({ "order_id": "7" })] {
            assert_eq!(changed("metadata", metadata).unwrap().reference, "");
        }
    }

    #[test]
    fn what_went_back_is_an_amount_and_the_payment_stays_paid() {
        let back = changed("amountChargedBack", json!({ "currency": "EUR", "value": "10.00" })).unwrap();
        assert_eq!((back.status, back.charged_back), (Status::Paid, Decimal::new(1000, 2)));
        assert_eq!(changed("amountChargedBack", json!(null)).unwrap().charged_back, Decimal::ZERO);
        let refunded = changed("amountRefunded", json!({ "currency": "EUR", "value": "2.50" })).unwrap();
        assert_eq!((refunded.status, refunded.refunded), (Status::Paid, Decimal::new(250, 2)));
    }

    #[test]
    fn a_reason_is_the_banks_or_the_cards() {
        let failure = |details: Value| changed("details", details).unwrap().failure;
        assert_eq!(
            failure(json!({ "bankReasonCode": "AM04", "bankReason": "Insufficient funds" })).as_deref(),
            Some("Insufficient funds")
        );
        assert_eq!(failure(json!({ "failureReason": "card_expired" })).as_deref(), Some("card_expired"));
        assert_eq!(failure(json!(null)), None);
    }

    #[test]
    fn an_answer_that_cannot_be_read_has_an_unknown_outcome() {
        for (name, value) in [
            ("status", json!("settled")),
            ("id", json!("tr_1/../2")),
            ("amount", json!({ "currency": "EUR", "value": "ten" })),
            ("amount", json!(10)),
            ("paidAt", json!("yesterday")),
        ] {
            assert!(matches!(changed(name, value), Err(Fault::OutcomeUnknown { .. })), "{name}");
        }
    }

    #[test]
    fn the_cursor_is_the_only_thing_taken_from_a_link() {
        let listed = |link: Value| {
            page(json!({ "_embedded": { "payments": [] }, "_links": { "next": link } }), "payments")
        };
        assert_eq!(listed(json!(null)), Ok((vec![], None)));
        let next = json!({ "href": "https://elsewhere.example/v2/payments?limit=5&from=tr_9" });
        assert_eq!(listed(next), Ok((vec![], Some("tr_9".to_owned()))));
        for link in ["https://api.mollie.com/v2/payments", "nonsense", "https://api.mollie.com/?from=a%26b"] {
            assert!(listed(json!({ "href": link })).is_err(), "{link}");
        }
    }

    #[test]
    fn a_long_description_is_cut_between_characters() {
        let payment = NewPayment {
            reference: "r".to_owned(),
            sequence: Sequence::OneOff,
            amount: Decimal::ONE,
            currency: "EUR".to_owned(),
            description: "é".repeat(300),
            return_url: None,
            webhook_url: "https://example.org/".to_owned(),
        };
        let body = new_payment(&payment).unwrap();
        assert_eq!(body["description"].as_str().map(|text| text.chars().count()), Some(255));
    }
}
