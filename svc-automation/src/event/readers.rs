//! Who may read which events: whoever may read the record that an event is about, which the contract says. Pure.
//!
//! An event of a service is read with the scope of its record's own GET. One that an integration fired is its own business,
//! and else that of automation. What services tell each other and the contract does not name is read by nobody.

use std::collections::HashMap;
use std::sync::OnceLock;

use chassis_data::list::Values;
use chassis_rpc::token::Identity;
use proto::api::Access;
use proto::policy::RPCS;

use super::Event;
use super::rules::BUILT_IN;

/// What reads the events that others have fired.
const FIRED_SCOPE: &str = "automation.read";

/// Somebody who reads events.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    /// Whose own events it may read, whatever they are about.
    key: String,
    /// `None`: everything.
    scopes: Option<Vec<String>>,
}

impl Reader {
    /// `scopes` is `None` for one who may read everything.
    pub fn new(key: String, scopes: Option<Vec<String>>) -> Self {
        Self { key, scopes }
    }

    pub fn of_caller(caller: &Identity) -> Self {
        Self { key: caller.actor.clone(), scopes: (!caller.is_mesh()).then(|| caller.scopes.clone()) }
    }

    pub fn may_read(&self, event: &Event) -> bool {
        let is_fired = event.sequence.is_none();
        if !is_fired && !BUILT_IN.contains(&event.kind.as_str()) {
            return false;
        }
        let Some(scopes) = &self.scopes else { return true };
        let needed = if is_fired { Some(FIRED_SCOPE) } else { scope_of(&event.entity_type) };
        // A key that has ended has nothing any more.
        let is_own = is_fired && !scopes.is_empty() && !self.key.is_empty() && event.actor == self.key;
        is_own || needed.is_some_and(|needed| scopes.iter().any(|have| have == needed))
    }

    /// The same as a condition on a row of events.
    pub fn condition(&self, values: &mut Values) -> String {
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

/// The scope that reads a record: that of its own GET.
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

/// `TicketMessage` is `ticket_message`.
fn snake(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 2);
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(letter.to_ascii_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use uuid::Uuid;

    /// The records that the services' events are about.
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

    fn reader(key: &str, scopes: &[&str]) -> Reader {
        Reader::new(key.to_owned(), Some(scopes.iter().map(ToString::to_string).collect()))
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
            let told = event("ticket.created", entity_type, Some(1));
            assert!(reader("k", &[scope]).may_read(&told), "{entity_type}");
            assert!(!reader("k", &["webhooks.write", "products.read"]).may_read(&told), "{entity_type}");
        }
    }

    #[test]
    fn what_an_integration_fired_is_its_own_and_automations() {
        let fired = event("order.shipped", "ticket", None);
        assert!(reader("mine", &["webhooks.write"]).may_read(&fired));
        assert!(!reader("other", &["webhooks.write", "tickets.read"]).may_read(&fired));
        assert!(reader("other", &["automation.read"]).may_read(&fired));
        assert!(!reader("mine", &[]).may_read(&fired), "it was revoked");
        assert!(!reader("", &["webhooks.write"]).may_read(&Event { actor: String::new(), ..fired }));
    }

    #[test]
    fn what_services_tell_each_other_is_read_by_nobody() {
        let internal = event("file.stored", "file", Some(1));
        assert!(!reader("k", &["files.read"]).may_read(&internal));
        assert!(!Reader::new(String::new(), None).may_read(&internal));
    }
}
