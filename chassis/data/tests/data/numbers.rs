//! Numbers of a counter that may have gaps: taken together with what a call writes if it is alone, before that where several
//! are under way.

use std::collections::BTreeSet;

use chassis_base::{Account, Error};
use chassis_data::{Db, LazyTx};
use chassis_testing::{bare, eventually};
use futures::future::join_all;
use proto::api::{Problem, ProvisionAccountRequest, ProvisionAccountResponse};
use tokio::sync::{Notify, watch};

const COUNTER: &str = "things";

/// The number of a call, and whether it needed a transaction for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    InTransaction(i64),
    Otherwise(i64),
}

impl Taken {
    fn number(self) -> i64 {
        let (Self::InTransaction(number) | Self::Otherwise(number)) = self;
        number
    }
}

/// Runs a call that takes a number and then does `rest`.
async fn create(
    db: &Db,
    account: &Account,
    rest: impl AsyncFn(Taken) -> Result<(), Error>,
) -> Result<Taken, tonic::Status> {
    let taken = watch::Sender::new(None);
    let operation = async |tx: &mut LazyTx<'_>, _: &ProvisionAccountRequest| {
        tx.unaudited("a test");
        let number = tx.number(COUNTER).await?;
        let is_open = tx.opened().is_some();
        let number = if is_open { Taken::InTransaction(number) } else { Taken::Otherwise(number) };
        taken.send_replace(Some(number));
        rest(number).await?;
        Ok::<_, Error>(ProvisionAccountResponse {})
    };
    db.write_lazily(bare::call(account, db.clock()), operation).await?;
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
    create(&db, &account, refused).await.unwrap_err();
    assert_eq!(create(&db, &account, at_once).await.unwrap(), Taken::Otherwise(1));
    create(&db, &account, refused).await.unwrap_err();
    assert_eq!(create(&db, &account, at_once).await.unwrap(), Taken::Otherwise(2));
}

#[tokio::test]
async fn a_number_that_another_replica_has_taken_is_not_taken_again() {
    let database = bare::database().await;
    let clock = chassis_testing::clock();
    let account = chassis_testing::account();
    let [here, there] = [bare::open(&database, &clock), bare::open(&database, &clock)];
    for (replica, taken) in [
        (&here, Taken::Otherwise(1)),
        (&here, Taken::Otherwise(2)),
        (&there, Taken::Otherwise(3)),
        // It expected 3, and was refused. Then it looks before it expects, until nobody else takes numbers.
        (&here, Taken::InTransaction(4)),
        (&there, Taken::InTransaction(5)),
        (&here, Taken::Otherwise(6)),
        (&there, Taken::Otherwise(7)),
        (&here, Taken::Otherwise(8)),
        (&here, Taken::Otherwise(9)),
        (&here, Taken::Otherwise(10)),
        (&there, Taken::Otherwise(11)),
        (&here, Taken::InTransaction(12)),
    ] {
        assert_eq!(create(replica, &account, at_once).await.unwrap(), taken);
    }
}

#[tokio::test]
async fn calls_that_run_together_do_not_wait_for_each_other() {
    let database = bare::database().await;
    let (db, account) = (bare::open(&database, &chassis_testing::clock()), chassis_testing::account());
    create(&db, &account, at_once).await.unwrap();
    // The first gives the others a reason to take their numbers before they write.
    let (begun, go_on) = (Notify::new(), watch::Sender::new(false));
    let first = create(&db, &account, async |_| {
        begun.notify_one();
        go_on.subscribe().wait_for(|go_on| *go_on).await.unwrap();
        Ok(())
    });
    let others = async {
        begun.notified().await;
        // The second goes on when the third has ended.
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
        go_on.send_replace(true);
        (second.unwrap(), third.unwrap())
    };
    let (first, others) = tokio::join!(first, others);
    assert_eq!(others, (Taken::Otherwise(2), Taken::Otherwise(3)));
    assert_eq!(first.unwrap(), Taken::InTransaction(4), "another has got the number that it expected");
    assert_eq!(create(&db, &account, at_once).await.unwrap(), Taken::Otherwise(5), "alone again");
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
    let numbers: BTreeSet<i64> = taken.iter().map(|taken| taken.number()).collect();
    assert_eq!((taken.len(), numbers.len()), (96, 96));
    assert!(taken.iter().any(|taken| matches!(taken, Taken::Otherwise(_))));
    assert!(*numbers.last().unwrap() <= 122, "no call takes more than one, but the two that began alone");
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
    // One is alone and waits for the counter with its last statement, another to take numbers for itself and the third.
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
    assert!((8..=10).contains(&create(&db, &account, at_once).await.unwrap().number()));
}
