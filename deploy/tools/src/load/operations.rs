//! What is measured, as `operations.json` has it: operations on clients, invoices, deals, tasks and tickets, and the lists
//! of `growth`. Paths and bodies have the placeholders of [`Load`].

use std::collections::BTreeMap;

use deploy_tools::Result;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::requests::Load;

pub(crate) const CLIENT: &str = "client";
pub(crate) const INVOICE: &str = "invoice";
pub(crate) const DEAL: &str = "deal";
pub(crate) const TASK: &str = "task";
pub(crate) const TICKET: &str = "ticket";

/// The word that the search looks for, and the one that stands in its place in what it does not find.
pub(crate) const SEARCHED: &str = "korenbloem";
pub(crate) const NOT_SEARCHED: &str = "Handel";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Catalogue {
    resources: BTreeMap<String, Resource>,
    /// In the order of measuring: what adds data comes after what reads it, so that all rounds of a read see the same.
    pub operations: Vec<Operation>,
    pub growth: Vec<List>,
}

impl Catalogue {
    pub(crate) fn read() -> Result<Self> {
        Ok(serde_json::from_str(include_str!("operations.json"))?)
    }

    pub(crate) fn resource(&self, name: &str) -> &Resource {
        &self.resources[name]
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resource {
    /// The service that owns it; also the name of its schema and of its connections.
    pub service: String,
    pub path: String,
    body: Map<String, Value>,
}

impl Resource {
    /// A new one.
    pub(crate) fn create(&self) -> Load {
        let name = format!("a new entry of {}", self.path);
        Load { name, path: self.path.clone(), body: Value::from(self.body.clone()).to_string(), success: 201 }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operation {
    /// As on the command line.
    pub name: String,
    pub resource: String,
    /// What follows the path of the resource.
    #[serde(default)]
    path: String,
    /// The same of the request whose statements pgbench runs, when that is another one.
    recorded_path: Option<String>,
    /// Creates an entry that differs from other new ones in this.
    create: Option<Map<String, Value>>,
    body: Option<Map<String, Value>>,
    success: Option<u16>,
    /// Each request is one of any of many accounts.
    #[serde(default)]
    pub many_accounts: bool,
    /// Making PDFs is work for the processor; more connections only wait.
    max_connections: Option<u32>,
}

impl Operation {
    pub(crate) fn load(&self, resource: &Resource) -> Load {
        let path = resource.path.clone() + &self.path;
        let (body, success) = match (&self.create, &self.body) {
            (Some(difference), _) => {
                let body = resource.body.clone().into_iter().chain(difference.clone());
                (Value::Object(body.collect()).to_string(), 201)
            }
            (None, Some(body)) => (Value::from(body.clone()).to_string(), 200),
            (None, None) => (String::new(), 200),
        };
        Load { name: self.name.clone(), path, body, success: self.success.unwrap_or(success) }
    }

    /// What is recorded for pgbench.
    pub(crate) fn recorded(&self, resource: &Resource) -> Load {
        let load = self.load(resource);
        let other = self.recorded_path.as_ref().map(|path| resource.path.clone() + path);
        Load { path: other.unwrap_or_else(|| load.path.clone()), ..load }
    }

    /// With how many connections it is measured when so many are asked for.
    pub(crate) fn connections(&self, asked: u32) -> u32 {
        self.max_connections.map_or(asked, |most| asked.min(most))
    }
}

/// A page, or several like it, of the invoices of an account.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    pub name: String,
    /// Whether the limit is meant for it.
    #[serde(default)]
    pub judged: bool,
    /// `<middle>` is a page of the middle tenth, `<last>` the last one, `<recent>` the time since which few were changed.
    pub path: String,
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::requests::{Requests, Target};

    #[test]
    fn what_writes_to_a_resource_is_measured_after_what_reads_it() {
        let catalogue = Catalogue::read().unwrap();
        for resource in [CLIENT, INVOICE, DEAL, TASK, TICKET] {
            let mine = catalogue.operations.iter().filter(|operation| operation.resource == resource);
            let load = |operation: &Operation| operation.load(catalogue.resource(resource));
            let writes: Vec<bool> = mine.map(|operation| !load(operation).body.is_empty()).collect();
            assert!(writes.is_sorted() && !writes.is_empty(), "{resource}: {writes:?}");
        }
    }

    #[test]
    fn every_request_with_a_body_has_its_own_key_and_json() {
        let (catalogue, target) = (Catalogue::read().unwrap(), Target::new("h:1", "ba_x"));
        let load = |operation: &Operation| operation.load(catalogue.resource(&operation.resource));
        let writes = catalogue.operations.iter().map(load).filter(|load| !load.body.is_empty());
        for load in writes.chain(catalogue.resources.values().map(Resource::create)) {
            let mut requests = Requests::new(&target, &load).unwrap();
            let mut keys = HashSet::new();
            for number in 0..50 {
                let message = String::from_utf8(requests.next(number).to_vec()).unwrap();
                let body = message.split_once("\r\n\r\n").unwrap().1;
                assert!(serde_json::from_str::<Value>(body).is_ok() && !body.contains('<'), "{body}");
                assert!(keys.insert(requests.idempotency_key.clone()), "{}", load.name);
            }
        }
    }
}
