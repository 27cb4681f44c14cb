//! A copy of an account that is made from its change feed, and its comparison with the account.

use std::collections::{BTreeMap, BTreeSet};

use chassis_transcode::records::RecordKinds;
use gateway::testing::Api;
use serde_json::Value;

use crate::changes::{body, last_record, shown_now};
use crate::coverage::all_operations;

/// Kinds whose list shows all of them.
const LISTS: [(&str, &str); 6] = [
    ("client", "/v1/clients"),
    ("product", "/v1/products"),
    ("note", "/v1/notes"),
    ("task", "/v1/tasks"),
    ("invoice", "/v1/invoices"),
    ("quote", "/v1/quotes"),
];

/// Kind and id.
pub(super) type RecordId = (String, String);

#[derive(Default)]
pub(super) struct Copy {
    pub records: BTreeMap<RecordId, Value>,
    pub deleted: BTreeSet<RecordId>,
    cursor: String,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// All entries of a list, from all pages.
async fn list(api: &Api, path: &str) -> Vec<Value> {
    let (mut all, mut page) = (Vec::new(), 1);
    loop {
        let answer = api.get(&format!("{path}?per_page=100&page={page}")).await.expect(200);
        all.extend(answer.at("/data").as_array().unwrap().clone());
        if answer.at("/meta/pages").as_i64().is_none_or(|pages| page >= pages) {
            return all;
        }
        page += 1;
    }
}

/// The kinds of the services that run: a feed of all kinds needs them all.
const KINDS: &str = "client,supplier,custom_field,invoice,quote,workorder,payment,product,subscription,mandate,tax_rate,\
                     payment_term,corporate_identity,task,note,file,project,hour_entry,run,flow,webhook_endpoint";

impl Copy {
    /// Applies what has changed since the last time, page by page.
    pub(super) async fn follow(&mut self, api: &Api) {
        loop {
            let path = format!("/v1/changes?limit=50&kinds={KINDS}&after={}", self.cursor);
            let answer = api.get(&path).await.expect(200);
            for change in answer.at("/data").as_array().unwrap() {
                let record = (text(&change["kind"]), text(&change["id"]));
                if change["change"] == "deleted" {
                    self.records.remove(&record);
                    self.deleted.insert(record);
                } else {
                    assert!(change["record"].is_object(), "{change}");
                    self.deleted.remove(&record);
                    self.records.insert(record, change["record"].clone());
                }
            }
            self.cursor = text(&answer.at("/meta/cursor"));
            if answer.at("/meta/more") == false {
                return;
            }
        }
    }

    fn ids(&self, kind: &str) -> BTreeSet<&str> {
        self.records.keys().filter(|(of, _)| of == kind).map(|(_, id)| id.as_str()).collect()
    }

    /// Fails unless this is what the account is now.
    pub(super) async fn check(&self, api: &Api) {
        for (kind, path) in LISTS {
            let listed = list(api, path).await;
            let listed: BTreeSet<&str> = listed.iter().map(|entry| entry["id"].as_str().unwrap()).collect();
            assert!(!listed.is_empty(), "{kind}");
            assert_eq!(self.ids(kind), listed, "{kind}");
        }
        self.check_payments(api).await;
        let operations = all_operations();
        let kinds = RecordKinds::new(proto::policy::pool(), &operations).unwrap();
        for ((kind, id), record) in &self.records {
            let history = api.get(&format!("/v1/changes?kind={kind}&id={id}&limit=500")).await.expect(200);
            let history = body(&history);
            let last = last_record(&history);
            assert_eq!(&serde_json::from_str::<Value>(last).unwrap(), record, "{kind} {id}");
            let message = &kinds.get(kind).unwrap().message;
            for shown in shown_now(api, &operations, kind, message, id).await {
                assert!(shown.contains(last), "{kind} {id}:\nfeed: {last}\nGET: {shown}");
            }
        }
    }

    /// Payments are listed below their invoices only.
    async fn check_payments(&self, api: &Api) {
        let mut listed = BTreeMap::new();
        for invoice in self.ids("invoice") {
            for payment in list(api, &format!("/v1/invoices/{invoice}/payments")).await {
                listed.insert(("payment".to_owned(), text(&payment["id"])), payment);
            }
        }
        let ours = self.records.iter().filter(|((kind, _), _)| kind == "payment");
        let ours: BTreeMap<RecordId, Value> = ours.map(|(id, record)| (id.clone(), record.clone())).collect();
        assert!(!listed.is_empty());
        assert_eq!(ours, listed);
    }
}
