//! Who may read which events. Pure. A file of its own beside `rules`, because the same decision has two forms that must
//! agree: [`ReadAccess::allows`] for an event in memory, and [`ReadAccess::condition`] for rows.
//!
//! An event of a service is read with the scope of the GET of its record. An event that an integration fired is read by
//! the key that fired it and with the scope of automation. Internal events, which the contract does not list, are read by
//! nobody.

use std::collections::HashMap;
use std::sync::OnceLock;

use chassis_data::list::Values;
use chassis_rpc::token::Identity;
use proto::api::Access;
use proto::policy::RPCS;
use proto::snake;

use super::Event;
use super::rules::BUILT_IN;

/// The scope that reads events that other keys fired.
const FIRED_SCOPE: &str = "automation.read";

/// What a caller or a webhook endpoint may read.
#[derive(Clone, Debug)]
pub(crate) struct ReadAccess {
    /// The key whose own events are readable, whatever they are about.
    key: String,
    /// `None`: no restriction.
    scopes: Option<Vec<String>>,
}

impl ReadAccess {
    /// `scopes` is `None` for access without restriction.
    pub(crate) fn new(key: String, scopes: Option<Vec<String>>) -> Self {
        Self { key, scopes }
    }

    pub(crate) fn of_caller(caller: &Identity) -> Self {
        Self { key: caller.actor.clone(), scopes: (!caller.is_mesh()).then(|| caller.scopes.clone()) }
    }

    pub(crate) fn allows(&self, event: &Event) -> bool {
        let is_fired = event.sequence.is_none();
        if !is_fired && !BUILT_IN.contains(&event.kind.as_str()) {
            return false;
        }
        let Some(scopes) = &self.scopes else { return true };
        let needed = if is_fired { Some(FIRED_SCOPE) } else { scope_of(&event.entity_type) };
        // A revoked key has no scopes and may not even read its own events.
        let is_own = is_fired && !scopes.is_empty() && !self.key.is_empty() && event.actor == self.key;
        is_own || needed.is_some_and(|needed| scopes.iter().any(|have| have == needed))
    }

    /// The same decision as an SQL condition on a row of `event`.
    pub(crate) fn condition(&self, values: &mut Values) -> String {
        let built_in = values.bind(BUILT_IN.map(str::to_owned).to_vec());
        let Some(scopes) = &self.scopes else {
            return format!("sequence is null or type = any({built_in})");
        };
        let has = |scope: &str| scopes.iter().any(|have| have == scope);
        let types = scopes_of_types().iter().filter(|(_, scope)| has(scope));
        let types = values.bind(types.map(|(name, _)| name.clone()).collect::<Vec<_>>());
        let (all_fired, key) = (values.bind(has(FIRED_SCOPE)), values.bind(self.key.clone()));
        format!(
            "sequence is not null and type = any({built_in}) and entity_type = any({types}) \
             or sequence is null and ({all_fired} or actor = {key} and actor <> '')"
        )
    }
}

/// The scope that reads a record: the one of its own GET in the contract.
fn scope_of(entity_type: &str) -> Option<&'static str> {
    scopes_of_types().get(entity_type).copied()
}

fn scopes_of_types() -> &'static HashMap<String, &'static str> {
    static SCOPES: OnceLock<HashMap<String, &'static str>> = OnceLock::new();
    SCOPES.get_or_init(|| {
        let gets = RPCS.iter().filter(|rpc| rpc.access == Access::Key).filter_map(|rpc| {
            let (_, name) = rpc.path.rsplit_once("/Get")?;
            Some((snake(name), rpc.scope))
        });
        gets.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use uuid::Uuid;

    /// The record types of the services' events, with the scopes that read them.
    const ENTITY_TYPES: [(&str, &str); 9] = [
        ("ticket", "tickets.read"),
        ("invoice", "invoices.read"),
        ("quote", "invoices.read"),
        ("workorder", "invoices.read"),
        ("subscription", "relations.read"),
        ("deal", "deals.read"),
        ("project", "projects.read"),
        ("client", "relations.read"),
        ("flow", "automation.read"),
    ];

    fn event(kind: &str, entity_type: &str, sequence: Option<i64>) -> Event {
        Event {
            id: Uuid::nil(),
            kind: kind.to_owned(),
            entity_type: entity_type.to_owned(),
            entity_id: String::new(),
            sequence,
            data: "{}".to_owned(),
            occurred_at: DateTime::UNIX_EPOCH,
            depth: 0,
            actor: if sequence.is_none() { "mine".to_owned() } else { String::new() },
        }
    }

    fn access(key: &str, scopes: &[&str]) -> ReadAccess {
        ReadAccess::new(key.to_owned(), Some(scopes.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn every_kind_of_record_that_an_event_is_about_has_a_scope() {
        for (entity_type, scope) in ENTITY_TYPES {
            assert_eq!(scope_of(entity_type), Some(scope), "{entity_type}");
        }
        assert_eq!(scope_of("thing"), None);
    }

    #[test]
    fn an_event_is_read_with_the_scope_of_its_record_and_no_other() {
        for (entity_type, scope) in ENTITY_TYPES {
            let event = event("ticket.created", entity_type, Some(1));
            assert!(access("k", &[scope]).allows(&event), "{entity_type}");
            assert!(!access("k", &["webhooks.write", "products.read"]).allows(&event), "{entity_type}");
        }
    }

    #[test]
    fn what_an_integration_fired_is_read_by_its_key_and_with_the_scope_of_automation() {
        let fired = event("order.shipped", "ticket", None);
        assert!(access("mine", &["webhooks.write"]).allows(&fired));
        assert!(!access("other", &["webhooks.write", "tickets.read"]).allows(&fired));
        assert!(access("other", &["automation.read"]).allows(&fired));
        assert!(!access("mine", &[]).allows(&fired), "it was revoked");
        assert!(!access("", &["webhooks.write"]).allows(&Event { actor: String::new(), ..fired }));
    }

    #[test]
    fn internal_events_are_read_by_nobody() {
        let internal = event("file.stored", "file", Some(1));
        assert!(!access("k", &["files.read"]).allows(&internal));
        assert!(!ReadAccess::new(String::new(), None).allows(&internal));
    }
}
