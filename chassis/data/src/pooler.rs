//! Errors of a pooler in front of PostgreSQL.

/// Adds advice to the error of a pooler that refuses startup parameters; returns other errors unchanged.
pub(crate) fn explain(error: sqlx::Error) -> sqlx::Error {
    let sqlx::Error::Database(refusal) = &error else { return error };
    if refusal.code().as_deref() != Some("08P01")
        || !refusal.message().starts_with("unsupported startup parameter")
    {
        return error;
    }
    let text = format!(
        "a pooler refuses the startup parameters of this program ({}): set DATABASE_POOLER=true, and run \
         deploy/k8s/roles.sql, which gives search path and limits to the roles. migrate and compact-log cannot use a \
         pooler: let their DATABASE_URL name the database itself",
        refusal.message()
    );
    sqlx::Error::InvalidArgument(text)
}

/// Whether PgBouncer reports that no server connection became free within its `query_wait_timeout`.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(refusal) = error else { return false };
    refusal.code().as_deref() == Some("08P01") && refusal.message() == "query_wait_timeout"
}
