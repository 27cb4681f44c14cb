//! Products, and invoices, quotes and workorders in every state.

use std::collections::HashSet;

use chrono::{Days, NaiveDate};
use proto::billing::IdentityInput;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Answer, Api, text};

const DATA: &str = include_str!("sales.json");

#[derive(Deserialize)]
pub(crate) struct Sales {
    identity: Value,
    products: Vec<Value>,
    documents: Vec<Document>,
}

#[derive(Deserialize)]
struct Document {
    /// As in the path: invoices, quotes or workorders.
    kind: String,
    external_id: String,
    /// By its external id.
    client: String,
    title: String,
    #[serde(rename = "final")]
    is_final: bool,
    /// In days from today.
    date: i64,
    /// The same; without it the client's term.
    due: Option<i64>,
    rows: Vec<Value>,
    /// What happens to it afterwards.
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Step {
    Pay(Payment),
    Credit(Value),
    Send(Value),
    Accept(Value),
    Patch(Value),
}

#[derive(Deserialize)]
struct Payment {
    external_id: String,
    date: i64,
    /// Without one: what is open.
    amount: Option<String>,
}

pub(crate) fn data() -> Result<Sales, String> {
    serde_json::from_str(DATA).map_err(|fault| format!("sales.json: {fault}"))
}

impl Sales {
    /// The seller on the documents.
    pub(crate) fn identity(&self) -> IdentityInput {
        let field = |name: &str| self.identity[name].as_str().unwrap_or_default().to_owned();
        IdentityInput {
            name: field("name"),
            primary_color: field("primary_color"),
            secondary_color: field("secondary_color"),
            company_name: field("company_name"),
            address: field("address"),
            zipcode: field("zipcode"),
            city: field("city"),
            country: field("country"),
            email: field("email"),
            phone: field("phone"),
            website: field("website"),
            company_registration_number: field("company_registration_number"),
            vat_number: field("vat_number"),
            iban: field("iban"),
            bic: field("bic"),
            bank_account_name: field("bank_account_name"),
            footer: field("footer"),
        }
    }

    /// Whether everything is there: the last document is made when all others are.
    pub(crate) async fn is_there(&self, api: &mut Api) -> Result<bool, String> {
        let Some(last) = self.documents.last() else { return Ok(true) };
        let found = format!("/v1/{}?search={}&per_page=1", last.kind, last.external_id);
        Ok(api.total(&found).await? > 0)
    }

    /// Adds what is missing.
    pub(crate) async fn add(&self, api: &mut Api, today: NaiveDate) -> Result<(), String> {
        for product in &self.products {
            // A conflict: it is there.
            api.try_post("/v1/products", &format!("seed-product-{}", text(product, "code")?), product)
                .await?;
        }
        println!("{} products", self.products.len());
        for document in &self.documents {
            document.add(api, today).await?;
        }
        let kinds: HashSet<&str> = self.documents.iter().map(|document| document.kind.as_str()).collect();
        for kind in kinds {
            println!("{} {kind}", self.documents.iter().filter(|document| document.kind == kind).count());
        }
        Ok(())
    }
}

impl Document {
    async fn add(&self, api: &mut Api, today: NaiveDate) -> Result<(), String> {
        let path = format!("/v1/{}", self.kind);
        let key = format!("seed-{}", self.external_id);
        let document = match api.try_post(&path, &key, &self.body(today)).await? {
            Answer::Done(created) => created,
            // An earlier run made it, more than a day ago.
            Answer::Conflict(problem) => {
                api.get(&format!("{path}/{}", text(&problem["data"], "id")?)).await?
            }
        };
        let document = &document["data"];
        let path = format!("{path}/{}", text(document, "id")?);
        for (number, step) in self.steps.iter().enumerate() {
            if !step.is_done(api, &path, document).await? {
                step.take(api, &path, &format!("{key}-{number}"), today).await?;
            }
        }
        Ok(())
    }

    fn body(&self, today: NaiveDate) -> Value {
        let mut body = json!({
            "title": self.title,
            "client_external_id": self.client,
            "external_id": self.external_id,
            "generation_mode": if self.is_final { "final" } else { "draft" },
            "invoice_date": day(today, self.date),
            "rows": self.rows,
        });
        if let Some(due) = self.due {
            body["due_date"] = json!(day(today, due));
        }
        body
    }
}

impl Step {
    /// What an earlier run did is left alone.
    async fn is_done(&self, api: &mut Api, path: &str, document: &Value) -> Result<bool, String> {
        Ok(match self {
            Self::Pay(payment) => {
                let found = format!("{path}/payments?external_id={}", payment.external_id);
                api.get(&found).await?["data"].as_array().is_some_and(|payments| !payments.is_empty())
            }
            Self::Credit(_) => {
                document["meta"]["credited_by"].as_array().is_some_and(|credits| !credits.is_empty())
            }
            Self::Send(_) => document["sent_at"].as_str().is_some_and(|time| !time.is_empty()),
            Self::Accept(_) | Self::Patch(_) => false,
        })
    }

    async fn take(&self, api: &mut Api, path: &str, key: &str, today: NaiveDate) -> Result<(), String> {
        let answer = match self {
            Self::Pay(payment) => {
                let mut body = json!({"external_id": payment.external_id, "date": day(today, payment.date)});
                if let Some(amount) = &payment.amount {
                    body["amount"] = json!(amount);
                }
                api.post(&format!("{path}/payments"), key, &body).await
            }
            Self::Credit(body) => api.post(&format!("{path}/credit"), key, body).await,
            Self::Send(body) => api.post(&format!("{path}/send"), key, body).await,
            Self::Accept(body) => api.post(&format!("{path}/accept"), key, body).await,
            Self::Patch(body) => api.patch(path, key, body).await,
        };
        answer.map(drop)
    }
}

/// The day so many days from today, as the API writes it.
pub(crate) fn day(today: NaiveDate, from_now: i64) -> String {
    let days = Days::new(from_now.unsigned_abs());
    let day = if from_now < 0 { today.checked_sub_days(days) } else { today.checked_add_days(days) };
    day.unwrap_or(today).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Sales {
        /// Whether a final invoice is among the documents.
        pub(crate) fn has(&self, invoice: &str) -> bool {
            let is_it = |document: &Document| document.external_id == invoice && document.is_final;
            self.documents.iter().any(|document| is_it(document) && document.kind == "invoices")
        }
    }

    #[test]
    fn documents_name_clients_of_the_sample_data_and_differ_in_their_external_ids() {
        let (sales, relations) = (data().unwrap(), crate::relations::data().unwrap());
        let clients: HashSet<&str> =
            relations.clients.iter().map(|client| text(client, "external_id").unwrap()).collect();
        let mut seen = HashSet::new();
        for document in &sales.documents {
            assert!(clients.contains(document.client.as_str()), "{}", document.client);
            assert!(seen.insert(&document.external_id), "{}", document.external_id);
            assert!(["invoices", "quotes", "workorders"].contains(&document.kind.as_str()));
            assert!(document.due.is_none_or(|due| due >= document.date), "{}", document.external_id);
        }
    }

    #[test]
    fn the_last_document_has_no_steps_that_could_be_missing_when_it_is_there() {
        assert!(data().unwrap().documents.last().unwrap().steps.is_empty());
    }

    #[test]
    fn the_sellers_bank_account_and_vat_number_are_right() {
        let identity = data().unwrap().identity();
        assert_eq!(
            chassis_base::formats::bank::normalise_iban(&identity.iban).as_deref(),
            Some(identity.iban.as_str())
        );
        let vat = chassis_base::formats::vat::normalise(&identity.vat_number, &identity.country);
        assert_eq!(vat.as_deref(), Some(identity.vat_number.as_str()));
        assert!(!identity.name.is_empty() && !identity.footer.is_empty());
    }

    #[test]
    fn days_are_counted_from_today_in_both_directions() {
        let today = NaiveDate::from_ymd_opt(2026, 3, 1).unwrap();
        assert_eq!(
            (day(today, -1), day(today, 0), day(today, 31)),
            ("2026-02-28".to_owned(), "2026-03-01".to_owned(), "2026-04-01".to_owned())
        );
    }
}
