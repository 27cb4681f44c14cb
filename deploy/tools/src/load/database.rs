//! The database, through PostgreSQL's own programs and with a superuser's rights.
//!
//! How to connect goes to them by environment (`PGHOST`, `PGPASSWORD`, …): a command line can be read by everyone.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// As the services set them for their connections.
const SESSION: &str = "-c statement_timeout=10s -c lock_timeout=5s -c idle_in_transaction_session_timeout=15s \
                       -c client_connection_check_interval=1s";

#[derive(Clone, Debug)]
pub(crate) struct Database {
    programs: PathBuf,
    environment: Vec<(&'static str, String)>,
}

impl Database {
    /// `url` is of the form `postgres://user:password@host:port/database`.
    pub(crate) fn new(programs: &Path, url: &str) -> Result<Self, String> {
        Ok(Self { programs: programs.to_owned(), environment: address(url)? })
    }

    /// `psql` or `pgbench` in a schema, ready for its arguments.
    pub(crate) fn command(&self, program: &str, schema: &str, options: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env("PGOPTIONS", format!("-c search_path={schema},public {options}"));
        command
    }

    /// `pgbench` as a service connects: with its role, schema and limits.
    pub(crate) fn pgbench(&self, service: &str, role: &str) -> Command {
        self.command("pgbench", service, &format!("{SESSION} -c role={role}"))
    }

    /// Runs statements one after another; the first that fails ends it.
    pub(crate) async fn run(&self, schema: &str, script: &str) -> Result<(), String> {
        self.value(schema, script).await.map(drop)
    }

    /// The same, with the single value that they give; columns are separated by `|`.
    pub(crate) async fn value(&self, schema: &str, script: &str) -> Result<String, String> {
        let mut child = self
            .command("psql", schema, "")
            .args(["-XAtq", "-v", "ON_ERROR_STOP=1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|fault| format!("psql: {fault}"))?;
        if let Some(mut stdin) = child.stdin.take() {
            // When psql ends early, what it says is worth more than that its pipe broke.
            let _ = stdin.write_all(script.as_bytes()).await;
        }
        let output = child.wait_with_output().await.map_err(|fault| format!("psql: {fault}"))?;
        if !output.status.success() {
            return Err(format!("psql: {}", String::from_utf8_lossy(&output.stderr)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The account that a client belongs to.
    pub(crate) async fn account_of(&self, client: &str) -> Result<String, String> {
        let sql = format!("select account_id from relations.relation where id = '{client}'");
        let account = self.value("relations", &sql).await?;
        let stranger = "the database does not have the clients that REST shows: is it the same one?";
        if account.is_empty() { Err(stranger.to_owned()) } else { Ok(account) }
    }
}

/// The variables that stand for an address.
fn address(url: &str) -> Result<Vec<(&'static str, String)>, String> {
    let wrong =
        || "a database address must have the form postgres://user:password@host:port/database".to_owned();
    let (_, rest) = url.split_once("://").ok_or_else(wrong)?;
    let (login, server) = rest.rsplit_once('@').ok_or_else(wrong)?;
    let (host, database) = server.split_once('/').ok_or_else(wrong)?;
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (host, port) = host.split_once(':').unwrap_or((host, "5432"));
    if [user, host, database].contains(&"") {
        return Err(wrong());
    }
    let parts = [
        ("PGUSER", user),
        ("PGPASSWORD", password),
        ("PGHOST", host),
        ("PGPORT", port),
        ("PGDATABASE", database),
    ];
    Ok(parts.map(|(name, value)| (name, value.to_owned())).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_becomes_the_variables_of_libpq() {
        let found = address("postgres://postgres:s:cret@127.0.0.1:7720/administration").unwrap();
        let expected = [
            ("PGUSER", "postgres"),
            ("PGPASSWORD", "s:cret"),
            ("PGHOST", "127.0.0.1"),
            ("PGPORT", "7720"),
            ("PGDATABASE", "administration"),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name, value.to_owned())));
        assert!(address("postgres://me@host/db").unwrap().contains(&("PGPORT", "5432".to_owned())));
    }

    #[test]
    fn an_address_without_user_host_or_database_is_refused_without_repeating_it() {
        for url in ["host/db", "postgres://host/db", "postgres://me:secret@host", "postgres://me:secret@/db"]
        {
            let fault = address(url).unwrap_err();
            assert!(!fault.contains("secret"), "{fault}");
        }
    }
}
