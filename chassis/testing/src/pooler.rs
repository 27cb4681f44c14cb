//! How services under test reach their databases: directly, or through a pooler in transaction mode, with a role per
//! schema that has its search path and limits. The tests themselves always connect directly.

#![expect(clippy::expect_used, reason = "a test that cannot get its database has to stop")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::str::FromStr;

use chassis_data::connect::Address;
use chassis_data::session_settings::{LIMITS, NO_JIT};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};

use super::admin::{execute, server_options};

/// The address of a pooler in front of the server for tests; `deploy/test pgbouncer` sets it.
const VARIABLE: &str = "TEST_POOLER_URL";

/// The database settings of a service.
pub struct ServiceDatabase {
    pub url: String,
    pooler: bool,
}

impl ServiceDatabase {
    pub fn address(&self) -> Address<'_> {
        Address { url: &self.url, pooler: self.pooler }
    }

    pub fn flags(&self) -> [String; 2] {
        [format!("--database-url={}", self.url), format!("--database-pooler={}", self.pooler)]
    }

    pub fn environment(&self) -> [(&'static str, String); 2] {
        [("DATABASE_URL", self.url.clone()), ("DATABASE_POOLER", self.pooler.to_string())]
    }
}

/// How the service with this schema reaches a database of [`TestDatabase`](crate::TestDatabase). Addresses of other
/// servers are unchanged.
pub fn service_database(url: &str, schema: &str) -> ServiceDatabase {
    let direct = || ServiceDatabase { url: url.to_owned(), pooler: false };
    let Some(pooler) = pooler() else { return direct() };
    let (wanted, server) = (PgConnectOptions::from_str(url).expect("a postgres address"), server_options());
    if (wanted.get_host(), wanted.get_port()) != (server.get_host(), server.get_port()) {
        return direct();
    }
    ServiceDatabase { url: through(wanted, &pooler, schema), pooler: true }
}

fn through(database: PgConnectOptions, pooler: &PgConnectOptions, schema: &str) -> String {
    let options = database.host(pooler.get_host()).port(pooler.get_port()).username(&role(schema));
    options.to_url_lossy().to_string()
}

fn pooler() -> Option<PgConnectOptions> {
    let url = std::env::var(VARIABLE).ok()?;
    Some(PgConnectOptions::from_str(&url).expect("a postgres address"))
}

fn role(schema: &str) -> String {
    format!("test_{schema}")
}

/// Creates the roles of these schemas, if there is a pooler. The caller holds the advisory lock.
pub(super) async fn ensure_roles(server: &mut PgConnection, schemas: impl Iterator<Item = &str>) {
    if pooler().is_none() {
        return;
    }
    for schema in schemas {
        ensure_role(server, schema).await;
    }
}

/// Creates a superuser role whose search path is the schema, or gives it the settings that it lacks because it is older than
/// they are. Two processes must not do so at the same time, because the check and the change are separate statements.
async fn ensure_role(server: &mut PgConnection, schema: &str) {
    let role = role(schema);
    let settings: Vec<(&str, &str)> = LIMITS.into_iter().chain([NO_JIT]).collect();
    let stored: Vec<String> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let is_as_wanted: bool =
        sqlx::query_scalar("select exists (select from pg_roles where rolname = $1 and rolconfig @> $2)")
            .bind(&role)
            .bind(stored)
            .fetch_one(&mut *server)
            .await
            .expect("the list of roles");
    if is_as_wanted {
        return;
    }
    let url = server_options().to_url_lossy();
    let password = url.password().expect("an address with a password");
    let set = |(name, value): &(&str, &str)| format!("alter role {role} set {name} = '{value}';");
    let settings: Vec<String> = settings.iter().map(set).collect();
    let sql = format!(
        "begin;
         do $$ begin create role {role}; exception when duplicate_object then null; end $$;
         alter role {role} superuser login password '{password}';
         alter role {role} set search_path = {schema}, public; {} commit",
        settings.concat()
    );
    execute(server, sql).await;
}

/// The pooler of one test; stopped with the value.
pub struct TestPooler {
    folder: PathBuf,
    options: PgConnectOptions,
}

impl TestPooler {
    /// Starts a pooler in front of the test server, with `size` connections per role. Startup options of clients are
    /// refused, or ignored when `refuses` is false.
    pub fn start(size: usize, refuses: bool) -> Self {
        let folder = std::env::temp_dir().join(format!("pgbouncer-{}", uuid::Uuid::new_v4().simple()));
        let (size, server) = (size.to_string(), server_options().database("postgres").to_url_lossy());
        let mut arguments = vec!["start", "--pool", &size];
        if !refuses {
            arguments.push("--drop-options");
        }
        let path = folder.to_str().expect("a path that is text");
        arguments.extend([path, server.as_str()]);
        let started = command(&arguments);
        let report = String::from_utf8_lossy(&started.stderr);
        assert!(started.status.success(), "no PgBouncer: {report}");
        let url = String::from_utf8_lossy(&started.stdout).trim().to_owned();
        Self { folder, options: PgConnectOptions::from_str(&url).expect("its address") }
    }

    /// The address of the database for a role with the search path and limits of the schema's service.
    pub async fn url(&self, database: &str, schema: &str) -> String {
        let mut server = super::admin::connect_to_server().await;
        execute(&mut server, "select pg_advisory_lock(7237001)".to_owned()).await;
        ensure_role(&mut server, schema).await;
        through(PgConnectOptions::from_str(database).expect("a postgres address"), &self.options, schema)
    }

    /// The address of the database for the server's own role, which has no search path or limits.
    pub fn plain_url(&self, database: &str) -> String {
        let options = PgConnectOptions::from_str(database).expect("a postgres address");
        let options = options.host(self.options.get_host()).port(self.options.get_port());
        options.to_url_lossy().to_string()
    }
}

impl Drop for TestPooler {
    fn drop(&mut self) {
        command(&["stop", self.folder.to_str().unwrap_or_default()]);
    }
}

fn command(arguments: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().and_then(Path::parent).expect("the checkout");
    Command::new(root.join("deploy/pgbouncer")).args(arguments).output().expect("deploy/pgbouncer")
}
