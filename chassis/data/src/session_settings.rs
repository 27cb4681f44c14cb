//! What a session must have, and how it is noticed when somebody in between keeps it back.
//!
//! A program asks for its search path and its limits when it connects. A pooler in transaction mode cannot hand that on,
//! as its connections are used by one client after the other: PgBouncer refuses such a client, or drops what it asked for
//! (`ignore_startup_parameters`). So with a pooler the program asks for nothing and its role has the settings.

use sqlx::PgConnection;

/// Limits on every connection: nothing waits or runs for ever, nor on for somebody who has hung up. Behind a pooler the
/// role has them (`deploy/k8s/roles.sql`).
pub const LIMITS: [(&str, &str); 4] = [
    ("statement_timeout", "10s"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "15s"),
    ("client_connection_check_interval", "1s"),
];

const ROLE_ADVICE: &str = "Behind a pooler, search path and limits are settings of the role: run deploy/k8s/roles.sql, then \
                           let the pooler connect anew (RECONNECT in PgBouncer's console).";
const DROPPED_ADVICE: &str = "Something between here and PostgreSQL drops what a connection asks for, as a pooler does: set \
                       DATABASE_POOLER=true, and run deploy/k8s/roles.sql, which gives search path and limits to the roles.";

/// What a session has.
#[derive(sqlx::FromRow)]
pub struct SessionSettings {
    search_path: String,
    /// In the order of [`LIMITS`].
    limits: Vec<String>,
    /// Whether statements have the names that were given to them here.
    own_names: bool,
}

/// What a session has not, and what to do.
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

    /// What programs that serve need. They may have other limits than they ask for, but not none.
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

    /// Whether a command has what it asked for, which is no limits.
    pub fn is_as_asked(&self, schema: &str) -> bool {
        self.begins_with(schema) && self.limits.iter().all(|value| value == "0")
    }

    /// Whether statements that are prepared are found by whoever has the same connection of the pooler next. One that
    /// takes care of that gives them names of its own.
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
