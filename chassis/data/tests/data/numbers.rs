//! Numbers of a counter that may have gaps: taken within the transaction of a call that is alone, before it where several are
//! under way.

use std::collections::BTreeSet;

use chassis_base::{Account, Error};
use chassis_data::{Db, Tx};
use chassis_testing::{bare, eventually};
use futures::future::join_all;
use proto::api::{Problem, ProvisionAccountRequest, ProvisionAccountResponse};
use tokio::sync::{Notify, watch};

const COUNTER: &str = "things";

/// Where the number of a call came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Before(i64),
    Within(i64),
}

async fn number(tx: &mut Tx<'_>) -> Result<Taken, Error> {
    tx.unaudited("a test");
    match tx.number_ahead() {
        Some(number) => Ok(Taken::Before(number)),
        None => tx.next_number(COUNTER).await.map(Taken::Within),
    }
}

/// Runs a call that takes a number and then does `rest`.
async fn create(
    db: &Db,
    account: &Account,
    rest: impl AsyncFn(Taken) -> Result<(), Error>,
) -> Result<Taken, tonic::Status> {
    let taken = watch::Sender::new(None);
    let operation = async |tx: &mut Tx<'_>, _: &ProvisionAccountRequest| {
        let number = number(tx).await?;
        taken.send_replace(Some(number));
        rest(number).await?;
        Ok::<_, Error>(ProvisionAccountResponse {})
    };
    db.write_numbered(bare::call(account, db.clock()), COUNTER, operation).await?;
    Ok(taken.borrow().unwrap())
}

async fn at_once(_: Taken) -> Result<(), Error> {
    Ok(())
}

async fn refused(_: Taken) -> Result<(), Error> {
    Err(Error::problem(Problem::WrongStatus, "It is refused."))
}

#[tokio::test]
async fn a_call_that_is_alone_leaves_no_gap() {
    let database = bare::database().await;
    let (db, account) = (bare::open(&database, &chassis_testing::clock()), chassis_testing::account());
    assert_eq!(create(&db, &account, at_once).await.unwrap(), Taken::Within(1));
    create(&db, &account, refused).await.unwrap_err();
    assert_eq!(create(&db, &account, at_once).await.unwrap(), Taken::Within(2));
}

#[tokio::test]
async fn calls_that_run_together_do_not_wait_for_each_other() {
    let database = bare::database().await;
    let account = chassis_testing::account();
    // Half of the connections are for the writes of one account.
    let db = Db::open(database.url(), "bare", 6, chassis_testing::clock(), Vec::new()).unwrap();
    // The first gives the others a reason to take their numbers before.
    let (begun, go_on) = (Notify::new(), Notify::new());
    let first = async {
        let operation = async |tx: &mut Tx<'_>, _: &ProvisionAccountRequest| {
            tx.unaudited("a test");
            begun.notify_one();
            go_on.notified().await;
            Ok::<_, Error>(ProvisionAccountResponse {})
        };
        db.write_numbered(bare::call(&account, db.clock()), COUNTER, operation).await.unwrap();
    };
    let others = async {
        begun.notified().await;
        // The second stays open until the third has ended.
        let (second_has_its_number, third_has_ended) = (Notify::new(), Notify::new());
        let second = create(&db, &account, async |_| {
            second_has_its_number.notify_one();
            third_has_ended.notified().await;
            Ok(())
        });
        let third = async {
            second_has_its_number.notified().await;
            let third = create(&db, &account, at_once).await;
            third_has_ended.notify_one();
            third
        };
        let (second, third) = tokio::join!(second, third);
        go_on.notify_one();
        (second.unwrap(), third.unwrap())
    };
    let ((), taken) = tokio::join!(first, others);
    assert_eq!(taken, (Taken::Before(1), Taken::Before(2)));
    assert_eq!(create(&db, &account, at_once).await.unwrap(), Taken::Within(3), "alone again");
}

#[tokio::test]
async fn every_call_has_a_number_of_its_own() {
    let database = bare::database().await;
    let clock = chassis_testing::clock();
    let account = chassis_testing::account();
    // Two replicas with fewer connections than there are calls.
    let replicas = [bare::open(&database, &clock), bare::open(&database, &clock)];
    let calls = (0..120).map(|index| {
        let (replica, account) = (&replicas[index % 2], &account);
        async move {
            let is_refused = index % 5 == 0;
            let rest = async |taken| if is_refused { refused(taken).await } else { Ok(()) };
            create(replica, account, rest).await.ok()
        }
    });
    let taken: Vec<Taken> = join_all(calls).await.into_iter().flatten().collect();
    let numbers: BTreeSet<i64> =
        taken.iter().map(|(Taken::Before(number) | Taken::Within(number))| *number).collect();
    assert_eq!((taken.len(), numbers.len()), (96, 96));
    assert!(taken.iter().any(|taken| matches!(taken, Taken::Before(_))));
    assert!(*numbers.last().unwrap() <= 120, "no call takes more than one");
}

#[tokio::test]
async fn a_call_that_gives_up_keeps_nobody_waiting() {
    let database = bare::database().await;
    let (db, account) = (bare::open(&database, &chassis_testing::clock()), chassis_testing::account());
    let mut connection = database.connect().await;
    sqlx::query("insert into bare.counter values ($1, $2, 7)")
        .bind(account.id)
        .bind(COUNTER)
        .execute(&mut connection)
        .await
        .unwrap();
    sqlx::raw_sql("begin; select from bare.counter for update").execute(&mut connection).await.unwrap();
    // One is alone and waits for the counter in its transaction, another to take numbers for itself and the third.
    let mut observer = database.connect().await;
    let both_wait = eventually("both wait for the counter", async || {
        let waiting = sqlx::query_scalar::<_, i64>(
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
        );
        waiting.fetch_one(&mut observer).await.unwrap() == 2
    });
    tokio::select! {
        _ = join_all((0..3).map(|_| create(&db, &account, at_once))) => panic!("the counter is locked"),
        () = both_wait => {}
    }
    sqlx::raw_sql("rollback").execute(&mut connection).await.unwrap();
    assert!(matches!(create(&db, &account, at_once).await.unwrap(), Taken::Within(8..=10)));
}
