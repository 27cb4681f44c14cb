//! Errors of a distributed database that differ from those of a single server.

use sqlx::error::{DatabaseError, ErrorKind};
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// Whether the server could not reach another node. Then only the statement has failed and the session continues. If
/// the session itself ends, the severity is `fatal` and not `error`.
pub fn is_unreachable(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    let disconnected = error.code().is_some_and(|code| code.starts_with("08") || code.starts_with("57P"));
    let of_postgres = error.try_downcast_ref::<PgDatabaseError>();
    disconnected && of_postgres.is_some_and(|error| error.severity() == PgSeverity::Error)
}

/// The declared name of the violated constraint. An error of another node lacks the constraint field, so the name is
/// read from the message; there it ends with the number of the shard.
pub fn violated_constraint(error: &dyn DatabaseError) -> Option<&str> {
    let is_violation = error.code().is_some_and(|code| code.starts_with("23"));
    let in_message = || last_quoted(error.message()).filter(|_| is_violation);
    error.constraint().or_else(in_message).map(without_shard)
}

/// The table whose row lacks a value that it must have.
pub fn table_with_null(error: &dyn DatabaseError) -> Option<&str> {
    let is_null = error.kind() == ErrorKind::NotNullViolation;
    let table = error.table().or_else(|| last_quoted(error.message()));
    table.filter(|_| is_null).map(without_shard)
}

fn last_quoted(message: &str) -> Option<&str> {
    let (before, _) = message.rsplit_once('"')?;
    before.rsplit_once('"').map(|(_, quoted)| quoted)
}

/// Removes the number of the shard, which has at least six digits.
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
