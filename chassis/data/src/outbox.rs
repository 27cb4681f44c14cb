//! The outbox: events are written in the transaction that they report, and delivered later by the relay.

use uuid::Uuid;

/// Events between services. A listener without a list of types does not receive them; it must name them.
pub const INTERNAL_EVENTS: [&str; 3] = ["deal.deleted", "invoice.deleted", "quote.deleted"];

/// A service that receives events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The peer's name.
    pub name: String,
    /// The address of its gRPC server.
    pub url: String,
    /// The types of events that it receives; empty means all except the internal ones.
    pub types: Vec<String>,
}

impl Listener {
    pub fn wants(&self, kind: &str) -> bool {
        let names = || self.types.iter().any(|listed| listed == kind);
        if self.types.is_empty() { !INTERNAL_EVENTS.contains(&kind) } else { names() }
    }
}

impl std::str::FromStr for Listener {
    type Err = String;

    /// Parses `name=url`, or `name=url;type;type` for a listener of some types only.
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

/// A change of an entity, as listeners receive it.
#[derive(Clone, Debug)]
pub struct Event {
    /// For example `customer.created`.
    pub kind: &'static str,
    pub entity_type: &'static str,
    pub entity_id: Uuid,
    /// The entity's version after the change: events of one entity are delivered in this order.
    pub version: i64,
    /// A JSON object as text.
    pub data: String,
}

/// The most events of one version; a sequence is `version * EVENTS_PER_VERSION + ordinal`.
const EVENTS_PER_VERSION: i64 = 1000;

/// The outbox rows of one transaction as a vector for each column, as the insert takes them.
#[derive(Default)]
pub(crate) struct Batch {
    pub listeners: Vec<String>,
    pub entity_types: Vec<String>,
    pub entity_ids: Vec<Uuid>,
    pub sequences: Vec<i64>,
    pub ids: Vec<Uuid>,
    pub kinds: Vec<String>,
    pub data: Vec<String>,
    /// The records that led to the events. This is not a column; see [`caused`](crate::caused).
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
