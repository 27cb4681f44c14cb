//! How the services of tests reach their databases: directly, or through a pooler in transaction mode, with a role for each
//! schema that has its search path and limits. What a test looks at itself it always sees directly.

#![expect(clippy::expect_used, reason = "a test that cannot get its database has to stop")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::str::FromStr;

use chassis_data::connect::Address;
use chassis_data::session_settings::LIMITS;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};

use super::admin::{execute, server_options};

/// The address of a pooler in front of the server for tests; `deploy/test pgbouncer` sets it.
const VARIABLE: &str = "TEST_POOLER_URL";

/// What a service is told of its database.
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

/// The way of the service with this schema to a database of [`TestDatabase`](super::TestDatabase). Other addresses stay
/// what they are.
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

/// Makes the roles of these schemas, if there is a pooler; one process at a time.
pub(super) async fn ensure_roles(server: &mut PgConnection, schemas: impl Iterator<Item = &str>) {
    if pooler().is_none() {
        return;
    }
    for schema in schemas {
        ensure_role(server, schema).await;
    }
}

/// A role that may do everything, as the server's own, and works in the schema.
async fn ensure_role(server: &mut PgConnection, schema: &str) {
    let role = role(schema);
    let there: bool = sqlx::query_scalar("select exists (select from pg_roles where rolname = $1)")
        .bind(&role)
        .fetch_one(&mut *server)
        .await
        .expect("the list of roles");
    if there {
        return;
    }
    let url = server_options().to_url_lossy();
    let password = url.password().expect("an address with a password");
    let limits = LIMITS.map(|(name, value)| format!("alter role {role} set {name} = '{value}';"));
    let sql = format!(
        "begin; create role {role} superuser login password '{password}';
         alter role {role} set search_path = {schema}, public; {} commit",
        limits.concat()
    );
    execute(server, sql).await;
}

/// A pooler of one test; gone with the value.
pub struct TestPooler {
    folder: PathBuf,
    options: PgConnectOptions,
}

impl TestPooler {
    /// Starts one in front of the server for tests, which a role has `size` connections of. One that does not refuse
    /// what clients ask for at their start drops it.
    pub fn start(size: usize, refuses: bool) -> Self {
        let folder = std::env::temp_dir().join(format!("pgbouncer-{}", uuid::Uuid::new_v4().simple()));
        let (size, server) = (size.to_string(), server_options().database("postgres").to_url_lossy());
        let mut arguments = vec!["start", "--pool", &size];
        if !refuses {
            arguments.push("--drop-options");
        }
        let place = folder.to_str().expect("a path that is text");
        arguments.extend([place, server.as_str()]);
        let started = command(&arguments);
        let report = String::from_utf8_lossy(&started.stderr);
        assert!(started.status.success(), "no PgBouncer: {report}");
        let url = String::from_utf8_lossy(&started.stdout).trim().to_owned();
        Self { folder, options: PgConnectOptions::from_str(&url).expect("its address") }
    }

    /// A way to the database for a role that has what the schema's service needs.
    pub async fn url(&self, database: &str, schema: &str) -> String {
        let mut server = super::admin::connect_to_server().await;
        execute(&mut server, "select pg_advisory_lock(7237001)".to_owned()).await;
        ensure_role(&mut server, schema).await;
        through(PgConnectOptions::from_str(database).expect("a postgres address"), &self.options, schema)
    }

    /// A way to the database for the server's own role, which has nothing of the kind.
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
