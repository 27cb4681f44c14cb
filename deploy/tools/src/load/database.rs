//! A service's database, seen with the service's own role and session settings, through PostgreSQL's own programs.
//!
//! How to connect goes to them by environment (`PGHOST`, `PGPASSWORD`, …): a command line can be read by everyone.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::operations::Resource;

/// As the services set them for their connections (`chassis/src/db.rs`).
const SESSION: &str =
    "-c statement_timeout=10s -c lock_timeout=5s -c idle_in_transaction_session_timeout=15s";

#[derive(Clone, Debug)]
pub struct Database {
    programs: PathBuf,
    environment: Vec<(&'static str, String)>,
}

impl Database {
    /// `url` is of the form `postgres://user:password@host:port/database`.
    pub fn new(programs: &Path, url: &str, schema: &str) -> Result<Self, String> {
        let mut environment = address(url)?;
        environment.push(("PGOPTIONS", format!("-c search_path={schema},public {SESSION}")));
        Ok(Self { programs: programs.to_owned(), environment })
    }

    /// `psql` or `pgbench`, ready for its arguments.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The single value that a statement gives; columns are separated by `|`.
    pub async fn value(&self, statement: &str) -> Result<String, String> {
        self.psql(statement).await
    }

    /// Runs statements one after another; the first that fails ends it.
    pub async fn run(&self, script: &str) -> Result<(), String> {
        self.psql(script).await.map(drop)
    }

    /// By stdin, where a script may have any length.
    async fn psql(&self, script: &str) -> Result<String, String> {
        let mut child = self
            .command("psql")
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
}

/// The databases of the services that are measured.
#[derive(Clone, Debug)]
pub struct Databases {
    pub relations: Database,
    /// Those of the other services that are known, by what is measured in them.
    pub others: Vec<(Resource, Database)>,
}

impl Databases {
    pub fn find(&self, resource: Resource) -> Option<&Database> {
        if resource == Resource::Client {
            return Some(&self.relations);
        }
        self.others.iter().find(|(known, _)| *known == resource).map(|(_, database)| database)
    }

    pub fn get(&self, resource: Resource) -> Result<&Database, String> {
        self.find(resource).ok_or_else(|| format!("{} has no database", resource.service()))
    }

    /// The account that a client belongs to.
    pub async fn account_of(&self, client: &str) -> Result<String, String> {
        let sql = format!("select account_id from relations.relation where id = '{client}'");
        let account = self.relations.value(&sql).await?;
        if account.is_empty() {
            return Err(
                "the database does not have the clients that REST shows: is it the same one?".to_owned()
            );
        }
        Ok(account)
    }
}

/// The variables that stand for an address.
fn address(url: &str) -> Result<Vec<(&'static str, String)>, String> {
    let wrong =
        || "a database address must have the form postgres://user:password@host:port/database".to_owned();
    let (_, rest) = url.split_once("://").ok_or_else(wrong)?;
    let (login, place) = rest.rsplit_once('@').ok_or_else(wrong)?;
    let (host, database) = place.split_once('/').ok_or_else(wrong)?;
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
        let found = address("postgres://svc_billing:s:cret@127.0.0.1:7720/administration").unwrap();
        let expected = [
            ("PGUSER", "svc_billing"),
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
