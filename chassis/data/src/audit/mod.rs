//! The audit log: who changed what, when and in which request, with the record before and after. Entries are written in
//! the transaction of the change, by the statement that finishes it, read over gRPC ([`read`]) and deleted after the
//! retention time by a command ([`mod@purge`]). This module handles records only as messages of the contract.
//!
//! An entry stores the record as it is after the change; the state before is the image of the record's previous
//! entry. So an operation only reports what it writes, with [`Tx::changed`](crate::Tx::changed) and
//! [`Tx::removed`](crate::Tx::removed). If it reports nothing, the records in the rpc's response count as written. An
//! entry whose image equals the previous one is not listed. Debug builds check that no change lacks an entry
//! ([`check`]).

pub(crate) mod check;
mod image;
mod json;
mod purge;
mod read;

use std::fmt::Display;

use chassis_base::error::RecordRef;
use chassis_base::{AccountId, Clock};
use image::Image;
use prost::{Message, Name};
use uuid::Uuid;

pub use purge::purge;
pub use read::server;

struct Change {
    entity_type: String,
    entity_id: String,
    /// `None` when the record was removed.
    after: Option<Image>,
}

/// The changes of one transaction, at most one for each record.
#[derive(Default)]
pub(crate) struct Trail {
    changes: Vec<Change>,
    /// The owner of the records, if that is not the caller's account.
    account: Option<AccountId>,
    /// The reason why the transaction needs no entry.
    pub nothing: Option<&'static str>,
}

impl Trail {
    pub(crate) fn changed<M: Message + Name>(&mut self, entity_type: &str, id: &dyn Display, message: &M) {
        self.put(entity_type, id.to_string(), Some(Image::of(message)));
    }

    pub(crate) fn removed(&mut self, entity_type: &str, id: &dyn Display) {
        self.put(entity_type, id.to_string(), None);
    }

    pub(crate) fn file_under(&mut self, account: AccountId) {
        self.account = Some(account);
    }

    fn put(&mut self, entity_type: &str, entity_id: String, after: Option<Image>) {
        let same = |change: &&mut Change| change.entity_type == entity_type && change.entity_id == entity_id;
        match self.changes.iter_mut().find(same) {
            Some(change) => change.after = after,
            None => self.changes.push(Change { entity_type: entity_type.to_owned(), entity_id, after }),
        }
    }

    /// Adds the records in an rpc's response as changes, if the operation has reported none.
    pub(crate) fn answered(&mut self, rpc: &str, response: &impl Message) {
        if self.changes.is_empty() && self.nothing.is_none() {
            for (entity_type, id, image) in image::of_answer(rpc, response) {
                self.put(entity_type, id, Some(image));
            }
        }
    }

    /// The id of the record that was changed first.
    pub(crate) fn first(&self) -> Option<&str> {
        self.changes.first().map(|change| change.entity_id.as_str())
    }

    /// The kind and the id of the changed record, if exactly one was changed.
    pub(crate) fn only(&self) -> Option<RecordRef> {
        let [Change { entity_type, entity_id, .. }] = self.changes.as_slice() else { return None };
        Some(RecordRef { kind: entity_type.clone(), id: entity_id.clone() })
    }

    /// The entries as a vector for each column, as the insert takes them.
    pub(crate) fn rows(self, clock: &Clock) -> Rows {
        let mut rows = Rows { account: self.account, ..Rows::default() };
        for Change { entity_type, entity_id, after } in self.changes {
            rows.ids.push(clock.id());
            rows.entity_types.push(entity_type);
            rows.entity_ids.push(entity_id);
            let (message, image) = after.map_or((String::new(), None), |it| (it.message, Some(it.bytes)));
            rows.messages.push(message);
            rows.images.push(image);
        }
        rows
    }
}

/// The kind and the id of the record in an rpc's response, if there is exactly one.
pub(crate) fn record(rpc: &str, response: &impl Message) -> Option<RecordRef> {
    let mut records = image::of_answer(rpc, response).into_iter();
    let (entity_type, id, _) = records.next()?;
    records.next().is_none().then(|| RecordRef { kind: entity_type.to_owned(), id })
}

/// The entries of one transaction.
#[derive(Default)]
pub(crate) struct Rows {
    pub account: Option<AccountId>,
    pub ids: Vec<Uuid>,
    pub entity_types: Vec<String>,
    pub entity_ids: Vec<String>,
    pub messages: Vec<String>,
    pub images: Vec<Option<Vec<u8>>>,
}

impl Rows {
    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proto::api::{MailKey, PutMailKeyResponse};
    use proto::crm::{CreateDealResponse, Deal, Pipeline, ReorderPipelinesResponse};
    use proto::relations::{CreateClientResponse, Relation};

    use super::*;

    const CREATE: &str = "/admin.crm.v1.DealService/CreateDeal";

    fn deal(id: &str, title: &str) -> Deal {
        Deal { id: id.to_owned(), title: title.to_owned(), ..Deal::default() }
    }

    fn answer(id: &str, title: &str) -> CreateDealResponse {
        CreateDealResponse { data: Some(deal(id, title)) }
    }

    fn rows(trail: Trail) -> Rows {
        trail.rows(&Clock::system())
    }

    #[test]
    fn the_answer_stands_for_the_record_that_was_written() {
        let mut trail = Trail::default();
        trail.answered(CREATE, &answer("7", "New"));
        let rows = rows(trail);
        assert_eq!((rows.entity_types[0].as_str(), rows.entity_ids[0].as_str()), ("deal", "7"));
        assert_eq!(rows.images[0].as_deref(), Some(deal("7", "New").encode_to_vec().as_slice()));
        assert_eq!(rows.messages[0], Deal::full_name());
    }

    #[test]
    fn every_record_of_a_list_was_written() {
        let pipeline = |id: &str| Pipeline { id: id.to_owned(), ..Pipeline::default() };
        let answer = ReorderPipelinesResponse { data: vec![pipeline("1"), pipeline("2")] };
        let mut trail = Trail::default();
        trail.answered("/admin.crm.v1.PipelineService/ReorderPipelines", &answer);
        assert_eq!(rows(trail).entity_ids, ["1", "2"]);
    }

    #[test]
    fn what_the_operation_says_last_counts_and_goes_before_the_answer() {
        let mut trail = Trail::default();
        trail.changed("thing", &1, &deal("1", "New"));
        trail.removed("thing", &1);
        trail.changed("other", &1, &deal("1", "New"));
        trail.answered(CREATE, &answer("7", "Shown"));
        let rows = rows(trail);
        assert_eq!(
            (rows.entity_types.join(" "), rows.entity_ids.join(" ")),
            ("thing other".into(), "1 1".into())
        );
        assert!(rows.images[0].is_none() && rows.images[1].is_some());
    }

    #[test]
    fn an_answer_without_a_whole_record_says_nothing() {
        let mut trail = Trail::default();
        let key = MailKey { domain: "example.com".to_owned(), ..MailKey::default() };
        trail.answered("/admin.api.v1.MailKeyService/PutMailKey", &PutMailKeyResponse { key: Some(key) });
        let client =
            CreateClientResponse { data: Some(Relation { id: "7".to_owned(), ..Relation::default() }) };
        trail.answered("/admin.relations.v1.ClientService/CreateClient", &client);
        trail.answered("no such rpc", &answer("7", "New"));
        trail.nothing = Some("because");
        trail.answered(CREATE, &answer("7", "New"));
        assert!(rows(trail).is_empty());
    }
}
