//! What a distributed database says otherwise than one server does.

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// Whether what the server could not do is to reach another node: a statement has failed then, and the session goes on.
/// When it is its own session that ends, a server says `fatal`.
pub fn is_unreachable(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    let trouble = error.code().is_some_and(|code| code.starts_with("08") || code.starts_with("57P"));
    let of_postgres = error.try_downcast_ref::<PgDatabaseError>();
    trouble && of_postgres.is_some_and(|error| error.severity() == PgSeverity::Error)
}

/// The constraint that refused a statement, as it was named. What another node refused comes without that field, so the
/// message tells; and the name ends with the number of the shard there.
pub fn violated_constraint(error: &dyn DatabaseError) -> Option<&str> {
    let is_violation = error.code().is_some_and(|code| code.starts_with("23"));
    let told = || last_quoted(error.message()).filter(|_| is_violation);
    error.constraint().or_else(told).map(without_shard)
}

fn last_quoted(message: &str) -> Option<&str> {
    let (before, _) = message.rsplit_once('"')?;
    before.rsplit_once('"').map(|(_, quoted)| quoted)
}

/// Numbers of shards have six digits at least.
fn without_shard(constraint: &str) -> &str {
    match constraint.rsplit_once('_') {
        Some((name, shard)) if shard.len() >= 6 && shard.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => constraint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constraint_is_known_whichever_shard_tells_of_it() {
        assert_eq!(without_shard("account_name"), "account_name");
        assert_eq!(without_shard("account_name_102552"), "account_name");
        assert_eq!(without_shard("flow_name_1000001"), "flow_name");
        assert_eq!(without_shard("line_2"), "line_2");
    }

    #[test]
    fn the_message_names_the_constraint_last() {
        let unique = r#"duplicate key value violates unique constraint "account_name_102616""#;
        assert_eq!(last_quoted(unique), Some("account_name_102616"));
        let foreign =
            r#"insert or update on table "deal_102700" violates foreign key constraint "deal_stage_102700""#;
        assert_eq!(last_quoted(foreign), Some("deal_stage_102700"));
        assert_eq!(last_quoted("nothing is named"), None);
    }
}
