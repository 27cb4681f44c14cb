//! Events on their way out: written in the transaction that they tell of, delivered later by the relay.

use uuid::Uuid;

/// What services tell only each other: a listener of everything does not hear of it, one that names it does.
pub const INTERNAL_EVENTS: [&str; 3] = ["deal.deleted", "invoice.deleted", "quote.deleted"];

/// A service that wants to hear of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The peer's name.
    pub name: String,
    /// Where its gRPC is.
    pub url: String,
    /// The events it wants; empty for all but the internal ones.
    pub types: Vec<String>,
}

impl Listener {
    pub fn wants(&self, kind: &str) -> bool {
        let names = || self.types.iter().any(|wanted| wanted == kind);
        if self.types.is_empty() { !INTERNAL_EVENTS.contains(&kind) } else { names() }
    }
}

impl std::str::FromStr for Listener {
    type Err = String;

    /// `name=url`, or `name=url;type;type` for a listener that wants only some.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(';');
        let (name, url) = parts
            .next()
            .and_then(|first| first.split_once('='))
            .ok_or_else(|| format!("`{text}` must have the form name=url or name=url;type;type"))?;
        let types = parts.map(|kind| kind.trim().to_owned()).collect();
        Ok(Self { name: name.trim().to_owned(), url: url.trim().to_owned(), types })
    }
}

/// Something that happened to an entity.
#[derive(Clone, Debug)]
pub struct Event {
    /// For example `customer.created`.
    pub kind: &'static str,
    pub entity_type: &'static str,
    pub entity_id: Uuid,
    /// The entity's version after the change: events of one entity are delivered in this order.
    pub version: i64,
    /// JSON text of an object.
    pub data: String,
}

/// How many events one change of an entity can have.
const EVENTS_PER_VERSION: i64 = 1000;

/// The rows of the events of one transaction, a column at a time, as the insert takes them.
#[derive(Default)]
pub(crate) struct Batch {
    pub listeners: Vec<String>,
    pub entity_types: Vec<String>,
    pub entity_ids: Vec<Uuid>,
    pub sequences: Vec<i64>,
    pub ids: Vec<Uuid>,
    pub kinds: Vec<String>,
    pub data: Vec<String>,
    /// The records that led to them; no column, see [`caused`](crate::caused).
    pub origins: Vec<Uuid>,
}

impl Batch {
    pub(crate) fn add(
        &mut self,
        id: Uuid,
        ordinal: i64,
        event: &Event,
        origin: Uuid,
        listeners: &[Listener],
    ) {
        for listener in listeners.iter().filter(|listener| listener.wants(event.kind)) {
            self.listeners.push(listener.name.clone());
            self.entity_types.push(event.entity_type.to_owned());
            self.entity_ids.push(event.entity_id);
            self.sequences.push(event.version * EVENTS_PER_VERSION + ordinal);
            self.ids.push(id);
            self.kinds.push(event.kind.to_owned());
            self.data.push(event.data.clone());
            self.origins.push(origin);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_hears_only_what_it_wants() {
        let some: Listener = "billing=http://b:1;customer.updated;quote.accepted".parse().unwrap();
        assert!(some.wants("quote.accepted") && !some.wants("customer.created"));
        let all: Listener = "automation=http://a:1".parse().unwrap();
        assert!(all.wants("anything") && !all.wants("deal.deleted"));
        let work: Listener = "work=http://w:1;deal.deleted".parse().unwrap();
        assert!(work.wants("deal.deleted") && !work.wants("invoice.deleted"));
        assert!("nonsense".parse::<Listener>().is_err());
    }
}
