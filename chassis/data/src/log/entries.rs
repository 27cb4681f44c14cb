//! The log entries of one transaction: one for each changed record, and one for each event that has no such entry yet.
//!
//! An entry tells one event at most, so that a listener can refuse one event without another: the first event about a
//! changed record is in the entry of the change, all others have entries of their own.

use std::collections::{HashMap, HashSet};

use chassis_base::Clock;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::changes::{Change, Changes};
use super::event::Emitted;

/// What happened to a record, as far as the program knows; the statement that writes the entry tells `created` from
/// `updated`, and leaves out a change that changes nothing.
const CHANGED: &str = "changed";
const REMOVED: &str = "deleted";

/// The entries as a vector for each column, as the insert takes them.
#[derive(Default)]
pub(crate) struct Entries {
    pub ids: Vec<Uuid>,
    pub kinds: Vec<String>,
    pub record_ids: Vec<String>,
    /// As the record says; `None`: one more than that of the record's last change.
    pub versions: Vec<Option<i64>>,
    /// `None`: the record has not changed in this transaction, or has an entry for that.
    pub changes: Vec<Option<&'static str>>,
    pub messages: Vec<String>,
    pub images: Vec<Option<Vec<u8>>>,
    pub image_hashes: Vec<Option<Vec<u8>>>,
    pub events: Vec<Option<&'static str>>,
    pub sequences: Vec<Option<i64>>,
    pub data: Vec<Option<String>>,
    pub depths: Vec<i32>,
}

impl Entries {
    /// `events` come with their depths. A change has the depth of the transaction.
    pub(crate) fn new(changes: Changes, events: Vec<(Emitted, i32)>, depth: i32, clock: &Clock) -> Self {
        let mut entries = Self::default();
        // Backwards, so that the first event about a record is the one that is known.
        let places = events.iter().enumerate().rev().map(|(place, (emitted, _))| (subject(emitted), place));
        let first: HashMap<(&str, String), usize> = places.collect();
        let mut events: Vec<Option<(Emitted, i32)>> = events.into_iter().map(Some).collect();
        let mut entered = HashSet::new();
        for change in changes.into_vec() {
            let event = first.get(&(change.kind.as_str(), change.record_id.clone()));
            let event = event.and_then(|place| events[*place].take());
            entered.insert((change.kind.clone(), change.record_id.clone()));
            entries.change(change, event, depth, clock);
        }
        for (emitted, depth) in events.into_iter().flatten() {
            let (kind, record_id) = subject(&emitted);
            let is_first = entered.insert((kind.to_owned(), record_id));
            entries.event(emitted, depth, is_first, clock);
        }
        entries
    }

    fn change(&mut self, change: Change, event: Option<(Emitted, i32)>, depth: i32, clock: &Clock) {
        let Change { kind, record_id, after } = change;
        self.ids.push(clock.id());
        self.kinds.push(kind);
        self.record_ids.push(record_id);
        self.versions.push(after.as_ref().and_then(|image| image.version));
        self.changes.push(Some(if after.is_some() { CHANGED } else { REMOVED }));
        self.image_hashes.push(after.as_ref().map(|image| Sha256::digest(&image.bytes).to_vec()));
        let (message, image) = after.map_or((String::new(), None), |it| (it.message, Some(it.bytes)));
        self.messages.push(message);
        self.images.push(image);
        let (event, depth) = event.map_or((None, depth), |(event, depth)| (Some(event), depth));
        self.tell(event, depth);
    }

    /// `is_first`: the record has no other entry.
    fn event(&mut self, emitted: Emitted, depth: i32, is_first: bool, clock: &Clock) {
        let (kind, record_id) = subject(&emitted);
        self.ids.push(clock.id());
        self.kinds.push(kind.to_owned());
        self.record_ids.push(record_id);
        self.versions.push(is_first.then_some(emitted.event.version));
        self.changes.push(None);
        self.messages.push(String::new());
        self.images.push(None);
        self.image_hashes.push(None);
        self.tell(Some(emitted), depth);
    }

    fn tell(&mut self, emitted: Option<Emitted>, depth: i32) {
        self.depths.push(depth);
        self.events.push(emitted.as_ref().map(|emitted| emitted.event.kind));
        self.sequences.push(emitted.as_ref().map(|emitted| emitted.sequence));
        self.data.push(emitted.map(|emitted| emitted.event.data));
    }
}

/// The kind and the id of the record that an event is about.
fn subject(emitted: &Emitted) -> (&'static str, String) {
    (emitted.event.entity_type, emitted.event.entity_id.to_string())
}

#[cfg(test)]
mod tests {
    use proto::api::MailKey;

    use super::super::event::Event;
    use super::*;

    const RECORD: Uuid = Uuid::from_u128(7);

    fn emitted(kind: &'static str, entity_id: Uuid, ordinal: usize) -> (Emitted, i32) {
        let event = Event { kind, entity_type: "thing", entity_id, version: 3, data: "{}".to_owned() };
        (Emitted::new(&event, entity_id, ordinal), 0)
    }

    #[test]
    fn a_change_tells_its_first_event_and_the_others_follow() {
        let mut changes = Changes::default();
        changes.changed("thing", &RECORD, &MailKey::default());
        changes.removed("thing", &1);
        let elsewhere = emitted("thing.seen", Uuid::from_u128(9), 0);
        let events = vec![elsewhere, emitted("thing.made", RECORD, 1), emitted("thing.won", RECORD, 2)];
        let entries = Entries::new(changes, events, 4, &Clock::system());
        assert_eq!(entries.events, [Some("thing.made"), None, Some("thing.seen"), Some("thing.won")]);
        assert_eq!(entries.changes, [Some(CHANGED), Some(REMOVED), None, None]);
        assert_eq!(entries.versions, [None, None, Some(3), None]);
        assert_eq!(entries.sequences, [Some(3001), None, Some(3000), Some(3002)]);
        assert_eq!(entries.depths, [0, 4, 0, 0]);
        assert!(entries.ids.is_sorted() && entries.image_hashes[0].is_some() && entries.images[1].is_none());
    }
}
