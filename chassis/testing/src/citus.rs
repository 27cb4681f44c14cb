//! Private databases on a Citus cluster: the same name on every node, distributed as `deploy/distribute.sql` says.
//!
//! A server counts as a coordinator when the database of its address has the extension; its nodes are those registered
//! there.

#![expect(clippy::expect_used, reason = "a test that cannot get its database has to stop")]

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::admin::{connect_to_server, execute, server_options};

/// A query that produces the statements which distribute all tables of the database. Read at run time, because the
/// sources that programs are compiled from do not include it.
const DISTRIBUTE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/distribute.sql");

/// The addresses of the worker nodes; empty when the server is not a coordinator.
pub(super) async fn workers() -> Vec<PgConnectOptions> {
    let mut server = connect_to_server().await;
    let installed: bool =
        sqlx::query_scalar("select exists (select from pg_extension where extname = 'citus')")
            .fetch_one(&mut server)
            .await
            .expect("the list of extensions");
    if !installed {
        return Vec::new();
    }
    let nodes: Vec<(String, i32)> = sqlx::query_as(
        "select nodename, nodeport from pg_dist_node where groupid <> 0 and noderole = 'primary' order by nodeid",
    )
    .fetch_all(&mut server)
    .await
    .expect("the list of nodes");
    let address =
        |(host, port): (String, i32)| server_options().host(&host).port(u16::try_from(port).expect("a port"));
    nodes.into_iter().map(address).collect()
}

/// Joins the databases with this name on all nodes into one cluster.
pub(super) async fn join(database: &str, workers: &[PgConnectOptions]) {
    for node in workers {
        run(&node.clone().database(database), "create extension citus").await;
    }
    let coordinator = server_options().database(database);
    run(&coordinator, "create extension citus").await;
    let (host, port) = (coordinator.get_host(), coordinator.get_port());
    run(&coordinator, &format!("select citus_set_coordinator_host('{host}', {port})")).await;
    for node in workers {
        let (host, port) = (node.get_host(), node.get_port());
        run(&coordinator, &format!("select citus_add_node('{host}', {port})")).await;
    }
}

/// Distributes the tables.
pub(super) async fn distribute(database: &str) {
    let options = server_options().database(database);
    let mut connection = PgConnection::connect_with(&options).await.expect("the coordinator");
    // psql's \gexec runs the statements that the query returns; here they are run one by one.
    let script = std::fs::read_to_string(DISTRIBUTE).expect("the script of the checkout");
    let query = script.trim_end().strip_suffix("\\gexec").expect("a script that psql runs").to_owned();
    let statements: Vec<String> =
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(&mut connection).await.expect("the statements");
    for statement in statements {
        execute(&mut connection, statement).await;
    }
}

/// Ends all connections to the database on every node, those of the cluster's own daemons included, because a database
/// with connections cannot be cloned.
pub(super) async fn leave(database: &str, workers: &[PgConnectOptions]) {
    for node in workers.iter().cloned().chain([server_options()]) {
        run(&node, &format!("alter database {database} with allow_connections false")).await;
        run(
            &node,
            &format!(
                "select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = '{database}'"
            ),
        )
        .await;
    }
}

/// Runs a statement on every worker, in the server's default database.
pub(super) async fn on_all(workers: &[PgConnectOptions], sql: &str) {
    for node in workers {
        run(node, sql).await;
    }
}

async fn run(options: &PgConnectOptions, sql: &str) {
    let mut connection = PgConnection::connect_with(options).await.expect("a node of the cluster");
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned()))
        .execute(&mut connection)
        .await
        .expect("a statement of the cluster's set-up");
}
