//! The settings that a session must have, and the check that a pooler has not dropped them.
//!
//! A program sends its search path and its limits as startup parameters. A pooler in transaction mode cannot pass
//! them on, because its clients share server connections: PgBouncer refuses such a client, or drops the parameters
//! (`ignore_startup_parameters`). So with a pooler the program sends none, and the settings belong to its role.

use sqlx::PgConnection;

/// Limits on every connection: no statement waits or runs for ever, or continues after its client has disconnected.
/// Behind a pooler they are settings of the role (`deploy/k8s/roles.sql`).
pub const LIMITS: [(&str, &str); 4] = [
    ("statement_timeout", "10s"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "15s"),
    ("client_connection_check_interval", "1s"),
];

/// No statement is compiled before it runs. The planner decides by its estimate, to which parts that may never run count as
/// well, such as counting a list that has no counter yet: the first page of a million invoices took 67 ms in place of 0.5.
/// What the services run are short statements, of which none is worth it.
pub const NO_JIT: (&str, &str) = ("jit", "off");

const ROLE_ADVICE: &str = "Behind a pooler, search path and limits are settings of the role: run deploy/k8s/roles.sql, then \
                           let the pooler reconnect (RECONNECT in PgBouncer's console).";
const DROPPED_ADVICE: &str = "A pooler or proxy in front of PostgreSQL drops the startup parameters of connections: set \
                       DATABASE_POOLER=true, and run deploy/k8s/roles.sql, which gives search path and limits to the roles.";

/// The settings of a session.
#[derive(chassis_derive::FromRow)]
pub struct SessionSettings {
    search_path: String,
    /// In the order of [`LIMITS`].
    limits: Vec<String>,
    /// Whether prepared statements have the names that sqlx gave them, and not names of a pooler.
    own_names: bool,
}

/// What is wrong with a session, and what to do about it.
pub struct Missing {
    pub saw: String,
    pub advice: &'static str,
}

impl SessionSettings {
    pub async fn read(connection: &mut PgConnection) -> Result<Self, sqlx::Error> {
        let names = LIMITS.map(|(name, _)| name);
        sqlx::query_as(
            "select current_setting('search_path') as search_path,
                    array(select current_setting(name) from unnest($1::text[]) with ordinality as wanted (name, place)
                          order by place) as limits,
                    exists (select from pg_prepared_statements where name like 'sqlx%') as own_names",
        )
        .bind(&names[..])
        .fetch_one(connection)
        .await
    }

    /// Checks what a running service needs. Its limits may differ from [`LIMITS`], but each must be set.
    pub fn missing(&self, schema: &str, pooler: bool) -> Option<Missing> {
        let advice = if pooler { ROLE_ADVICE } else { DROPPED_ADVICE };
        if !self.begins_with(schema) {
            let saw = format!("the search path is {}, and not {schema} first", self.search_path);
            return Some(Missing { saw, advice });
        }
        let unlimited: Vec<&str> = LIMITS
            .iter()
            .zip(&self.limits)
            .filter(|(_, value)| *value == "0")
            .map(|((name, _), _)| *name)
            .collect();
        let saw = || format!("sessions have no limit: {} is 0", unlimited.join(", "));
        (!unlimited.is_empty()).then(|| Missing { saw: saw(), advice })
    }

    /// Whether a command has the settings that it requested: its schema and no limits.
    pub fn is_as_asked(&self, schema: &str) -> bool {
        self.begins_with(schema) && self.limits.iter().all(|value| value == "0")
    }

    /// Whether a pooler keeps the prepared statements of its clients apart. It then gives them its own names, so that
    /// the next client of the same server connection does not find them.
    pub fn keeps_statements_apart(&self) -> bool {
        !self.own_names
    }

    pub fn statement_timeout(&self) -> &str {
        self.limits.first().map_or("", String::as_str)
    }

    fn begins_with(&self, schema: &str) -> bool {
        let first = self.search_path.split(',').next().unwrap_or_default();
        first.trim().trim_matches('"') == schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(search_path: &str, limits: [&str; 4]) -> SessionSettings {
        let limits = limits.map(str::to_owned).to_vec();
        SessionSettings { search_path: search_path.to_owned(), limits, own_names: false }
    }

    #[test]
    fn a_session_needs_its_schema_first_and_some_limit_everywhere() {
        let all = ["10s", "5s", "15s", "1s"];
        for path in ["billing", "billing, public", "\"billing\",public"] {
            assert!(given(path, all).missing("billing", true).is_none(), "{path}");
            assert!(given(path, ["0"; 4]).is_as_asked("billing"), "{path}");
        }
        for path in ["\"$user\", public", "public, billing", "billing_b, public", ""] {
            let missing = given(path, all).missing("billing", true).map(|missing| missing.saw);
            assert_eq!(missing, Some(format!("the search path is {path}, and not billing first")));
            assert!(!given(path, ["0"; 4]).is_as_asked("billing"), "{path}");
        }
        let missing = given("billing", ["8s", "0", "15s", "0"]).missing("billing", false).unwrap();
        assert_eq!(
            missing.saw,
            "sessions have no limit: lock_timeout, client_connection_check_interval is 0"
        );
        assert!(missing.advice.contains("DATABASE_POOLER=true"));
        assert!(!given("billing", ["0", "0", "15s", "0"]).is_as_asked("billing"));
    }
}
