//! What a session must have, and how it is noticed when somebody in between keeps it back.
//!
//! A program asks for its search path and its limits when it connects. A pooler in transaction mode cannot hand that on,
//! as its connections are used by one client after the other: PgBouncer refuses such a client, or drops what it asked for
//! (`ignore_startup_parameters`). So with a pooler the program asks for nothing and its role has the settings.

use sqlx::PgConnection;

use super::LIMITS;

const OF_THE_ROLE: &str = "Behind a pooler, search path and limits are settings of the role: run deploy/k8s/roles.sql, then \
                           let the pooler connect anew (RECONNECT in PgBouncer's console).";
const DROPPED: &str = "Something between here and PostgreSQL drops what a connection asks for, as a pooler does: set \
                       DATABASE_POOLER=true, and run deploy/k8s/roles.sql, which gives search path and limits to the roles.";

/// What a session has.
#[derive(sqlx::FromRow)]
pub(crate) struct Given {
    search_path: String,
    /// In the order of [`LIMITS`].
    limits: Vec<String>,
    /// Whether statements have the names that were given to them here.
    own_names: bool,
}

/// What a session has not, and what to do.
pub(crate) struct Lacking {
    pub saw: String,
    pub advice: &'static str,
}

impl Given {
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
    pub fn lacking(&self, schema: &str, pooler: bool) -> Option<Lacking> {
        let advice = if pooler { OF_THE_ROLE } else { DROPPED };
        if !self.begins_with(schema) {
            let saw = format!("the search path is {}, and not {schema} first", self.search_path);
            return Some(Lacking { saw, advice });
        }
        let unlimited: Vec<&str> = LIMITS
            .iter()
            .zip(&self.limits)
            .filter(|(_, value)| *value == "0")
            .map(|((name, _), _)| *name)
            .collect();
        let saw = || format!("sessions have no limit: {} is 0", unlimited.join(", "));
        (!unlimited.is_empty()).then(|| Lacking { saw: saw(), advice })
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

/// Says what to do when it is a pooler that refuses what a connection asks for; leaves other errors as they are.
pub(crate) fn explain(error: sqlx::Error) -> sqlx::Error {
    let sqlx::Error::Database(refusal) = &error else { return error };
    if refusal.code().as_deref() != Some("08P01")
        || !refusal.message().starts_with("unsupported startup parameter")
    {
        return error;
    }
    let text = format!(
        "a pooler refuses what this program asks for when it connects ({}): set DATABASE_POOLER=true, and run \
         deploy/k8s/roles.sql, which gives search path and limits to the roles. migrate and purge-audit cannot use a \
         pooler: let their DATABASE_URL name the database itself",
        refusal.message()
    );
    sqlx::Error::InvalidArgument(text)
}

/// Whether PgBouncer says that all of its connections were at work for longer than it lets anybody wait.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else { return false };
    refusal.code().as_deref() == Some("08P01") && refusal.message() == "query_wait_timeout"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(search_path: &str, limits: [&str; 4]) -> Given {
        let limits = limits.map(str::to_owned).to_vec();
        Given { search_path: search_path.to_owned(), limits, own_names: false }
    }

    #[test]
    fn a_session_needs_its_schema_first_and_some_limit_everywhere() {
        let all = ["10s", "5s", "15s", "1s"];
        for path in ["billing", "billing, public", "\"billing\",public"] {
            assert!(given(path, all).lacking("billing", true).is_none(), "{path}");
            assert!(given(path, ["0"; 4]).is_as_asked("billing"), "{path}");
        }
        for path in ["\"$user\", public", "public, billing", "billing_b, public", ""] {
            let lacking = given(path, all).lacking("billing", true).map(|lacking| lacking.saw);
            assert_eq!(lacking, Some(format!("the search path is {path}, and not billing first")));
            assert!(!given(path, ["0"; 4]).is_as_asked("billing"), "{path}");
        }
        let lacking = given("billing", ["8s", "0", "15s", "0"]).lacking("billing", false).unwrap();
        assert_eq!(
            lacking.saw,
            "sessions have no limit: lock_timeout, client_connection_check_interval is 0"
        );
        assert!(lacking.advice.contains("DATABASE_POOLER=true"));
        assert!(!given("billing", ["0", "0", "15s", "0"]).is_as_asked("billing"));
    }
}
