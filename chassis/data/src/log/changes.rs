//! The records that a transaction has changed, as its operations report them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Display;

use chassis_base::AccountId;
use chassis_base::error::RecordRef;
use prost::{Message, Name};

use super::image::{self, Image};

pub(super) struct Change {
    pub kind: String,
    pub record_id: String,
    /// `None` when the record was removed.
    pub after: Option<Image>,
}

/// The changes of one transaction, at most one for each record.
#[derive(Default)]
pub(crate) struct Changes {
    records: Vec<Change>,
    /// Where each record is in `records`, by kind and id: a transaction can change tens of thousands.
    places: HashMap<(String, String), usize>,
    /// The owner of the records, if that is not the caller's account.
    account: Option<AccountId>,
    /// The reason why the transaction needs no entry.
    pub nothing: Option<&'static str>,
}

impl Changes {
    pub(crate) fn changed<M: Message + Name>(&mut self, kind: &str, id: &dyn Display, message: &M) {
        self.put(kind, id.to_string(), Some(Image::of(message)));
    }

    pub(crate) fn removed(&mut self, kind: &str, id: &dyn Display) {
        self.put(kind, id.to_string(), None);
    }

    pub(crate) fn file_under(&mut self, account: AccountId) {
        self.account = Some(account);
    }

    pub(crate) fn put(&mut self, kind: &str, record_id: String, after: Option<Image>) {
        let known = self.places.entry((kind.to_owned(), record_id.clone()));
        match known {
            Entry::Occupied(place) => self.records[*place.get()].after = after,
            Entry::Vacant(place) => {
                place.insert(self.records.len());
                self.records.push(Change { kind: kind.to_owned(), record_id, after });
            }
        }
    }

    /// Adds the records in an rpc's encoded response as changes, if the operation has reported none.
    pub(crate) fn answered(&mut self, rpc: &str, response: &[u8]) {
        if self.records.is_empty() && self.nothing.is_none() {
            for (kind, id, image) in image::of_answer(rpc, response) {
                self.put(kind, id, Some(image));
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The id of the record that was changed first.
    pub(crate) fn first(&self) -> Option<&str> {
        self.records.first().map(|change| change.record_id.as_str())
    }

    /// The kind and the id of the changed record, if exactly one was changed.
    pub(crate) fn only(&self) -> Option<RecordRef> {
        let [Change { kind, record_id, .. }] = self.records.as_slice() else { return None };
        Some(RecordRef { kind: kind.clone(), id: record_id.clone() })
    }

    /// The version that the record with this id has got, if its message shows one.
    pub(crate) fn version_of(&self, id: &str) -> Option<i64> {
        let change = self.records.iter().find(|change| change.record_id == id)?;
        change.after.as_ref()?.version
    }

    /// The owner of the records, if that is not the caller's account.
    pub(crate) fn account(&self) -> Option<AccountId> {
        self.account
    }

    pub(crate) fn record_ids(&self) -> Vec<String> {
        self.records.iter().map(|change| change.record_id.clone()).collect()
    }

    pub(super) fn into_vec(self) -> Vec<Change> {
        self.records
    }
}

/// The kind and the id of the record in an rpc's encoded response, if there is exactly one.
pub(crate) fn record(rpc: &str, response: &[u8]) -> Option<RecordRef> {
    let mut records = image::of_answer(rpc, response).into_iter();
    let (kind, id, _) = records.next()?;
    records.next().is_none().then(|| RecordRef { kind: kind.to_owned(), id })
}

#[cfg(test)]
mod tests {
    use proto::api::{MailKey, PutMailKeyResponse};
    use proto::billing::{CreateProductResponse, Product};
    use proto::crm::{CreateDealResponse, Deal, Pipeline, ReorderPipelinesResponse};
    use proto::relations::{CreateClientResponse, Relation};

    use super::*;

    const CREATE: &str = "/admin.billing.v1.ProductService/CreateProduct";

    fn product(id: &str, name: &str) -> Product {
        Product { id: id.to_owned(), name: name.to_owned(), ..Product::default() }
    }

    fn answer(id: &str, name: &str) -> CreateProductResponse {
        CreateProductResponse { data: Some(product(id, name)) }
    }

    fn ids(changes: &Changes) -> Vec<&str> {
        changes.records.iter().map(|change| change.record_id.as_str()).collect()
    }

    #[test]
    fn the_answer_stands_for_the_record_that_was_written() {
        let mut changes = Changes::default();
        changes.answered(CREATE, &answer("7", "New").encode_to_vec());
        let [Change { kind, record_id, after: Some(image) }] = changes.records.as_slice() else { panic!() };
        assert_eq!((kind.as_str(), record_id.as_str()), ("product", "7"));
        assert_eq!(image.bytes, product("7", "New").encode_to_vec());
        assert_eq!(image.message, Product::full_name());
    }

    #[test]
    fn every_record_of_a_list_was_written() {
        let pipeline = |id: &str| Pipeline { id: id.to_owned(), ..Pipeline::default() };
        let answer = ReorderPipelinesResponse { data: vec![pipeline("1"), pipeline("2")] };
        let mut changes = Changes::default();
        changes.answered("/admin.crm.v1.PipelineService/ReorderPipelines", &answer.encode_to_vec());
        assert_eq!(ids(&changes), ["1", "2"]);
    }

    #[test]
    fn what_the_operation_says_last_counts_and_goes_before_the_answer() {
        let mut changes = Changes::default();
        changes.changed("thing", &1, &product("1", "New"));
        changes.removed("thing", &1);
        changes.changed("other", &1, &product("1", "New"));
        changes.answered(CREATE, &answer("7", "Shown").encode_to_vec());
        let [removed, other] = changes.records.as_slice() else { panic!() };
        assert_eq!((removed.kind.as_str(), removed.record_id.as_str()), ("thing", "1"));
        assert_eq!((other.kind.as_str(), other.record_id.as_str()), ("other", "1"));
        assert!(removed.after.is_none() && other.after.is_some());
    }

    #[test]
    fn an_answer_without_a_whole_record_says_nothing() {
        let mut changes = Changes::default();
        let key = MailKey { domain: "example.com".to_owned(), ..MailKey::default() };
        let key = PutMailKeyResponse { key: Some(key) };
        changes.answered("/admin.api.v1.MailKeyService/PutMailKey", &key.encode_to_vec());
        let client =
            CreateClientResponse { data: Some(Relation { id: "7".to_owned(), ..Relation::default() }) };
        changes.answered("/admin.relations.v1.ClientService/CreateClient", &client.encode_to_vec());
        let part = CreateDealResponse { data: Some(Deal { id: "7".to_owned(), ..Deal::default() }) };
        changes.answered("/admin.crm.v1.DealService/CreateDeal", &part.encode_to_vec());
        changes.answered("no such rpc", &answer("7", "New").encode_to_vec());
        changes.nothing = Some("because");
        changes.answered(CREATE, &answer("7", "New").encode_to_vec());
        assert!(changes.is_empty());
    }
}
