//! A client with personal data, and with records in several services that show it. There is no operation that deletes a
//! client: it is erased by emptying its fields.

use gateway::testing::Api;
use serde_json::json;

use super::business::{Business, create};

const FIRSTNAMES: [&str; 3] = ["Wilhelmijntje", "Hendrikadina", "Petronellia"];
const LASTNAMES: [&str; 3] = ["Zwaluwstaart", "Kievitsbloem", "Ooievaarsbek"];
const IBANS: [&str; 3] = ["NL91ABNA0417164300", "DE89370400440532013000", "BE68539007547034"];

pub(super) struct Person {
    client: String,
    /// Kind, path and id.
    records: Vec<(&'static str, &'static str, String)>,
    data: Vec<String>,
}

impl Person {
    pub(super) async fn create(api: &Api, number: usize) -> Self {
        let (firstname, lastname) = (FIRSTNAMES[number], LASTNAMES[number]);
        let email = format!("{number}@erased-person.example");
        let (phone, address) = (format!("+31 6 5550 777{number}"), format!("Verdwijnpad 40{number}"));
        let client = json!({
            "firstname": firstname, "lastname": lastname, "email": email, "phone": phone, "address": address,
            "iban": IBANS[number], "email_invoices": email, "mail_salutation": format!("Dear {firstname},"),
        });
        let client = create(api, "/v1/clients", client).await;
        let mut records = Vec::new();
        let body = format!("{firstname} can be called at {phone}");
        let note = create(api, "/v1/notes", json!({"body": body, "client_id": client})).await;
        records.push(("note", "/v1/notes", note));
        let title = format!("Bread for {lastname}");
        let task = json!({"title": title, "notes": email, "client_id": client});
        records.push(("task", "/v1/tasks", create(api, "/v1/tasks", task).await));
        let rows = json!([{"name": format!("Delivered at {address}"), "unit_price": 10}]);
        for (kind, path) in [("invoice", "/v1/invoices"), ("quote", "/v1/quotes")] {
            let draft = json!({"title": title, "client_id": client, "rows": rows});
            records.push((kind, path, create(api, path, draft).await));
        }
        let data = [firstname, lastname, &email, &phone, &address, IBANS[number]].map(str::to_owned).to_vec();
        Self { client, records, data }
    }

    /// Texts that are in no other records than those of the person.
    pub(super) fn data(&self) -> &[String] {
        &self.data
    }

    pub(super) async fn change_and_erase(&mut self, business: &mut Business<'_>) {
        let path = format!("/v1/clients/{}", self.client);
        let later = json!({"mail_salutation": format!("Good day {},", self.data[0])});
        business.api.patch(&path, later).await.expect(200);
        for (kind, path, id) in self.records.drain(..) {
            business.delete(kind, path, id).await;
        }
        let empty = json!({
            "firstname": "Erased", "lastname": null, "email": null, "phone": null, "address": null, "iban": null,
            "email_invoices": null, "mail_salutation": null,
        });
        business.api.patch(&path, empty).await.expect(200);
    }
}
