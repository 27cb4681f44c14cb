//! Events: what a change tells other services. They are written to the log with the change and delivered by the relay.

use uuid::Uuid;

/// Events between services. A listener without a list of types does not receive them; it must name them.
pub const INTERNAL_EVENTS: [&str; 5] =
    ["client.anonymized", "deal.deleted", "file.removed", "invoice.deleted", "quote.deleted"];

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

/// An event of the transaction, before it has a log entry.
#[derive(Clone, Debug)]
pub(crate) struct Emitted {
    pub event: Event,
    /// The record that led to the event; see [`caused`](crate::caused).
    pub origin: Uuid,
    pub sequence: i64,
}

impl Emitted {
    /// `ordinal` counts the events of the transaction.
    pub(crate) fn new(event: &Event, origin: Uuid, ordinal: usize) -> Self {
        let ordinal = i64::try_from(ordinal).unwrap_or(i64::MAX);
        Self { event: event.clone(), origin, sequence: event.version * EVENTS_PER_VERSION + ordinal }
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
