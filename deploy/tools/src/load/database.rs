//! The database, through PostgreSQL's own programs and with a superuser's rights.
//!
//! How to connect goes to them by environment (`PGHOST`, `PGPASSWORD`, …): a command line can be read by everyone.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use deploy_tools::Result;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// As the services set them for their connections.
const SESSION: &str = "-c statement_timeout=10s -c lock_timeout=5s -c idle_in_transaction_session_timeout=15s \
                       -c client_connection_check_interval=1s -c jit=off";

#[derive(Clone, Debug)]
pub(crate) struct Database {
    programs: PathBuf,
    environment: [(&'static str, String); 5],
}

impl Database {
    /// `url` is of the form `postgres://user:password@host:port/database`.
    pub(crate) fn new(programs: &Path, url: &str) -> Result<Self> {
        let form = "a database address must have the form postgres://user:password@host:port/database";
        let environment = environment(url).ok_or(form)?;
        Ok(Self { programs: programs.to_owned(), environment })
    }

    fn command(&self, program: &str, options: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.envs(self.environment.clone()).env("PGOPTIONS", options).kill_on_drop(true);
        command
    }

    /// `pgbench` as a service connects: with its role, schema and limits.
    pub(crate) fn pgbench(&self, service: &str, role: &str) -> Command {
        self.command("pgbench", &format!("{SESSION} -c search_path={service},public -c role={role}"))
    }

    /// Runs statements in a schema, one after another; the first that fails ends it. Returns what they give, with `|`
    /// between columns.
    pub(crate) async fn run(&self, schema: &str, script: &str) -> Result<String> {
        let mut command = self.command("psql", &format!("-c search_path={schema},public"));
        command.args(["-XAtq", "-v", "ON_ERROR_STOP=1"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let unusable = |fault: std::io::Error| format!("psql: {fault}");
        let mut child = command.spawn().map_err(unusable)?;
        if let Some(mut stdin) = child.stdin.take() {
            // When psql ends early, what it says is worth more than that its pipe broke.
            let _ = stdin.write_all(script.as_bytes()).await;
        }
        let output = child.wait_with_output().await.map_err(unusable)?;
        if !output.status.success() {
            return Err(format!("psql: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    pub(crate) async fn number(&self, schema: &str, script: &str) -> Result<u64> {
        let value = self.run(schema, script).await?;
        value.parse().map_err(|_| format!("psql gave {value} in place of a number").into())
    }

    /// The account that a client belongs to.
    pub(crate) async fn account_of(&self, client: &str) -> Result<String> {
        let sql = format!("select account_id from relations.relation where id = '{client}'");
        let account = self.run("relations", &sql).await?;
        let stranger = "the database does not have the clients that REST shows: is it the same one?";
        if account.is_empty() { Err(stranger.into()) } else { Ok(account) }
    }
}

/// The variables of libpq that stand for an address.
fn environment(url: &str) -> Option<[(&'static str, String); 5]> {
    let (login, server) = url.split_once("://")?.1.rsplit_once('@')?;
    let (host, database) = server.split_once('/')?;
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let (host, port) = host.split_once(':').unwrap_or((host, "5432"));
    let named = [
        ("PGUSER", user),
        ("PGHOST", host),
        ("PGDATABASE", database),
        ("PGPORT", port),
        ("PGPASSWORD", password),
    ];
    let is_complete = named[..3].iter().all(|(_, value)| !value.is_empty());
    is_complete.then(|| named.map(|(name, value)| (name, value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_becomes_the_variables_of_libpq() {
        let found = environment("postgres://postgres:s:cret@127.0.0.1:7720/administration").unwrap();
        let values = found.map(|(_, value)| value);
        assert_eq!(values, ["postgres", "127.0.0.1", "administration", "7720", "s:cret"]);
        assert!(environment("postgres://me@host/db").unwrap().contains(&("PGPORT", "5432".to_owned())));
        for url in ["host/db", "postgres://host/db", "postgres://me:secret@host", "postgres://me:secret@/db"]
        {
            assert_eq!(environment(url), None, "{url}");
        }
    }
}
