//! A new account is provisioned in the services.

use chassis_testing::eventually;

use crate::support::Mesh;

#[tokio::test]
async fn a_service_that_is_busy_for_a_moment_is_called_again() {
    let mesh = Mesh::start().await;
    let mut holder = mesh.database.connect().await;
    sqlx::raw_sql("begin; lock table crm.account").execute(&mut holder).await.unwrap();
    let mut watcher = mesh.database.connect().await;
    let mut waiting = async || {
        let sql = "select count(*) from pg_locks where not granted and relation = 'crm.account'::regclass";
        let count: i64 = sqlx::query_scalar(sql).fetch_one(&mut watcher).await.unwrap();
        count
    };
    let hold = async {
        eventually("the service waits for its table", async || waiting().await > 0).await;
        eventually("and says that it is busy", async || waiting().await == 0).await;
        sqlx::raw_sql("rollback").execute(&mut holder).await.unwrap();
    };
    // Fails if a service does not know the account in the end.
    tokio::join!(mesh.gateway.account("Bakery"), hold);
}
