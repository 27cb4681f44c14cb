//! What a pooler between here and PostgreSQL refuses.

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
