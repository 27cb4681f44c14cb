//! The pool of connections on real Postgres: bounded, fair, and rid of what is broken.

#![allow(clippy::unwrap_used, reason = "a test stops where its fact is false")]

mod support;

use chassis::testing::{self, eventually};
use chassis::{Db, Error};
use support::{database, open, write};

async fn backend(db: &Db) -> Result<i32, Error> {
    let mut connection = db.read().await?;
    let backend = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut *connection).await?;
    connection.done();
    Ok(backend)
}

#[tokio::test]
async fn many_readers_and_writers_share_a_few_connections() {
    let (database, clock) = (database().await, testing::clock());
    let db = open(&database, &clock);
    let account = testing::account();
    let uses = (0..200).map(async |number| {
        if number % 4 == 0 {
            write(&db, &account, async |tx| {
                let account = tx.account();
                chassis::numbering::next(tx.db(), account, "shared").await.map(|_| ())
            })
            .await;
        } else {
            backend(&db).await.unwrap();
        }
    });
    futures::future::join_all(uses).await;
    let mut connection = database.connect().await;
    let (backends, numbers): (i64, i64) = sqlx::query_as(
        "select (select count(*) from pg_stat_activity where application_name = 'bare' and datname = current_database()),
                (select value from bare.counter)",
    )
    .fetch_one(&mut connection)
    .await
    .unwrap();
    assert!((1..=4).contains(&backends), "{backends}");
    assert_eq!(numbers, 50);
}

#[tokio::test]
async fn a_read_that_was_given_up_does_not_disturb_the_next() {
    let (database, clock) = (database().await, testing::clock());
    let db = open(&database, &clock);
    for _ in 0..20 {
        let mut connection = db.read().await.unwrap();
        let slow = sqlx::query("select generate_series(1, 1000), 1 / (select 0 from pg_sleep(0.05))")
            .fetch_all(&mut *connection);
        // Polled once, so that the statement is on its way, and then dropped. It ends with an error of its own.
        assert!(futures::poll!(std::pin::pin!(slow)).is_pending());
        drop(connection);
        backend(&db).await.unwrap();
    }
}

#[tokio::test]
async fn connections_that_the_server_has_closed_are_replaced() {
    let (database, clock) = (database().await, testing::clock());
    let db = open(&database, &clock);
    let before = backend(&db).await.unwrap();
    let ended: bool = sqlx::query_scalar("select pg_terminate_backend($1)")
        .bind(before)
        .fetch_one(&mut database.connect().await)
        .await
        .unwrap();
    assert!(ended);
    eventually("reads work again", async || backend(&db).await.is_ok_and(|now| now != before)).await;
}
