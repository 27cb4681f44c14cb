//! The scopes that a key or a credential can have.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use proto::api::Access;
use proto::policy::ANY_SCOPE;

/// The scopes that the contract lists by area. A key may have one before its first operation exists.
const LISTED: [&str; 26] = [
    "invoices.read",
    "invoices.write",
    "relations.read",
    "relations.write",
    "tickets.read",
    "tickets.write",
    "deals.read",
    "deals.write",
    "projects.read",
    "projects.write",
    "products.read",
    "products.write",
    "tasks.read",
    "tasks.write",
    "notes.read",
    "notes.write",
    "files.read",
    "files.write",
    "automation.read",
    "automation.write",
    "webhooks.read",
    "webhooks.write",
    "settings.read",
    "settings.write",
    "keys.read",
    "keys.write",
];

/// Every scope, in alphabetical order: those that the contract lists and those that an operation requires.
pub fn all() -> &'static [String] {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut scopes: BTreeSet<String> = LISTED.map(str::to_owned).into();
        let required = proto::policy::RPCS.iter().filter(|rpc| rpc.access == Access::Key);
        let required = required.flat_map(|rpc| [rpc.scope, rpc.and_scope, rpc.or_scope]);
        scopes.extend(required.filter(|scope| !["", ANY_SCOPE].contains(scope)).map(str::to_owned));
        scopes.into_iter().collect()
    })
}

/// Every scope that a credential of an internal team can have: those of keys, and one for each area that has rpcs without
/// a REST route.
pub fn of_teams() -> &'static [String] {
    static OF_TEAMS: OnceLock<Vec<String>> = OnceLock::new();
    OF_TEAMS.get_or_init(|| {
        let mut scopes: BTreeSet<String> = all().iter().cloned().collect();
        let internal = proto::policy::RPCS.iter().filter(|rpc| rpc.access == Access::Mesh || rpc.internal);
        scopes.extend(internal.filter_map(proto::policy::Rpc::area).map(chassis_rpc::token::internal_scope));
        scopes.into_iter().collect()
    })
}

pub fn is_known(scope: &str) -> bool {
    all().binary_search_by(|have| have.as_str().cmp(scope)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scopes_are_those_of_the_contract() {
        assert!(is_known("relations.read") && is_known("webhooks.write"));
        assert!(is_known("settings.write") && is_known("keys.write"));
        assert!(!is_known("webhooks.all") && !is_known(ANY_SCOPE) && !is_known("") && !is_known("mesh"));
        assert_eq!(
            all().len(),
            LISTED.len(),
            "an operation requires a scope that the contract does not list"
        );
    }

    #[test]
    fn what_processes_say_to_each_other_is_not_a_scope_of_a_team() {
        let has = |scope: &str| of_teams().iter().any(|have| have == scope);
        assert!(has("relations.read") && has("crm.internal") && has("work.internal"));
        assert!(!has("api.internal") && !has("accounts.internal") && !has(chassis_rpc::token::MESH_SCOPE));
        assert!(of_teams().is_sorted());
    }
}
