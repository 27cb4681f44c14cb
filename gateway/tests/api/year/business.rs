//! What an account does all year: clients, products, notes, tasks, drafts that are deleted or become final, payments.

use gateway::testing::Api;
use http::Method;
use serde_json::{Value, json};

use super::copy::RecordId;

/// How many records of a kind are there before the oldest is deleted.
const KEPT: usize = 6;

pub(super) struct Business<'a> {
    pub api: &'a Api,
    pub deleted: Vec<RecordId>,
    clients: Vec<String>,
    products: Vec<String>,
    notes: Vec<String>,
    tasks: Vec<String>,
    drafts: Vec<String>,
}

pub(super) fn id(data: &Value) -> String {
    data["id"].as_str().unwrap().to_owned()
}

impl<'a> Business<'a> {
    pub(super) fn new(api: &'a Api) -> Self {
        Self {
            api,
            deleted: Vec::new(),
            clients: Vec::new(),
            products: Vec::new(),
            notes: Vec::new(),
            tasks: Vec::new(),
            drafts: Vec::new(),
        }
    }

    pub(super) async fn work(&mut self, step: i64) {
        if step % 4 == 1 {
            let client = json!({"company_name": format!("Client {step}"), "city": "Utrecht"});
            self.clients.push(create(self.api, "/v1/clients", client).await);
        }
        match step % 4 {
            0 => self.sell(step).await,
            1 => self.change_product(step).await,
            2 => self.take_notes(step).await,
            _ => self.change_task(step).await,
        }
        let client = &self.clients[self.clients.len() / 2];
        let changed = json!({"phone": format!("020 {step}"), "address": format!("Prinsengracht {step}")});
        self.api.patch(&format!("/v1/clients/{client}"), changed).await.expect(200);
    }

    /// Drafts: one of four becomes final and is paid, with a payment that is changed and one that is deleted.
    async fn sell(&mut self, step: i64) {
        let client = self.clients.last().unwrap().clone();
        let rows = json!([{"name": "Bread", "unit_price": 10, "vat_rate": "9"}]);
        let body = json!({"title": format!("Bread {step}"), "client_id": client, "rows": rows});
        create(self.api, "/v1/quotes", body.clone()).await;
        let invoice = create(self.api, "/v1/invoices", body).await;
        let path = format!("/v1/invoices/{invoice}");
        self.api.patch(&path, json!({"title": format!("Rolls {step}")})).await.expect(200);
        if step % 16 != 0 {
            self.drafts.push(invoice);
            return self.delete_oldest(|all| &mut all.drafts, "invoice", "/v1/invoices").await;
        }
        self.api.post(&format!("{path}/finalize"), json!({})).await.expect(200);
        let pay = async |amount: &str| {
            let paid =
                self.api.post(&format!("{path}/payments"), json!({"amount": amount})).await.expect(201);
            id(&paid.at("/data/payment"))
        };
        let (first, second) = (pay("1.00").await, pay("2.00").await);
        let changed = json!({"amount": "1.50"});
        self.api.patch(&format!("{path}/payments/{first}"), changed).await.expect(200);
        self.delete("payment", &format!("{path}/payments"), second).await;
    }

    async fn change_product(&mut self, step: i64) {
        let product = json!({"name": format!("Loaf {step}"), "price": "4.00", "vat_rate": "9"});
        let product = create(self.api, "/v1/products", product).await;
        self.products.push(product);
        let first = format!("/v1/products/{}", self.products[0]);
        self.api.patch(&first, json!({"price": format!("{step}.50")})).await.expect(200);
        self.delete_oldest(|all| &mut all.products, "product", "/v1/products").await;
    }

    async fn take_notes(&mut self, step: i64) {
        let note = json!({"body": format!("Note {step}"), "client_id": self.clients.last()});
        let note = create(self.api, "/v1/notes", note).await;
        self.notes.push(note);
        let first = format!("/v1/notes/{}", self.notes[0]);
        self.api.patch(&first, json!({"body": format!("Changed {step}")})).await.expect(200);
        self.delete_oldest(|all| &mut all.notes, "note", "/v1/notes").await;
    }

    async fn change_task(&mut self, step: i64) {
        let task = create(self.api, "/v1/tasks", json!({"title": format!("Task {step}")})).await;
        self.api.post(&format!("/v1/tasks/{task}/complete"), json!({})).await.expect(200);
        self.tasks.push(task);
        self.delete_oldest(|all| &mut all.tasks, "task", "/v1/tasks").await;
    }

    async fn delete_oldest(&mut self, of: fn(&mut Self) -> &mut Vec<String>, kind: &str, path: &str) {
        if of(self).len() > KEPT {
            let oldest = of(self).remove(0);
            self.delete(kind, path, oldest).await;
        }
    }

    pub(super) async fn delete(&mut self, kind: &str, path: &str, id: String) {
        let answer = self.api.send(Method::DELETE, &format!("{path}/{id}"), &[], "").await;
        assert!(answer.status.is_success(), "{path}/{id}: {}", answer.json());
        self.deleted.push((kind.to_owned(), id));
    }
}

pub(super) async fn create(api: &Api, path: &str, body: Value) -> String {
    id(&api.post(path, body).await.expect(201).at("/data"))
}
