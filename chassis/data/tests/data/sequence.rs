//! Numbers of a counter that must have no gaps, taken by writes without a transaction that stand in line.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use chassis_base::{Account, Error};
use chassis_data::{Db, LazyTx};
use chassis_testing::bare;
use futures::future::join_all;
use proto::api::{Problem, ProvisionAccountRequest, ProvisionAccountResponse};
use tokio::sync::{Notify, watch};

const COUNTER: &str = "things";

/// The number of a call, and whether it needed a transaction for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    InTransaction(i64),
    InLine(i64),
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
        let number = match tx.transaction() {
            Some(tx) => {
                let number = tx.next_number(COUNTER).await?;
                tx.took_number(COUNTER, number);
                Taken::InTransaction(number)
            }
            None => Taken::InLine(tx.next_in_sequence(COUNTER).await?),
        };
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
async fn a_call_that_fails_leaves_its_number_to_the_next() {
    let database = bare::database().await;
    let (db, account) = (bare::open(&database, &chassis_testing::clock()), chassis_testing::account());
    for number in 1..=3 {
        create(&db, &account, refused).await.unwrap_err();
        assert_eq!(create(&db, &account, at_once).await.unwrap(), Taken::InLine(number));
    }
}

/// Runs three calls. The second begins when the first has its number, the third when the second has its; both are ready to
/// write before the first does `rest`.
async fn three(
    db: &Db,
    account: &Account,
    rest: impl AsyncFn(Taken) -> Result<(), Error>,
) -> [Result<Taken, tonic::Status>; 3] {
    let (first_begun, second_begun, third_begun) = (Notify::new(), Notify::new(), Notify::new());
    let first = create(db, account, async |taken| {
        if matches!(taken, Taken::InLine(_)) {
            first_begun.notify_one();
            third_begun.notified().await;
        }
        rest(taken).await
    });
    let second = async {
        first_begun.notified().await;
        create(db, account, async |_| {
            second_begun.notify_one();
            Ok(())
        })
        .await
    };
    let third = async {
        second_begun.notified().await;
        create(db, account, async |_| {
            third_begun.notify_one();
            Ok(())
        })
        .await
    };
    let (first, second, third) = tokio::join!(first, second, third);
    [first, second, third]
}

#[tokio::test]
async fn calls_that_run_together_write_one_after_the_other_without_a_transaction() {
    let database = bare::database().await;
    let (db, account) = (bare::open(&database, &chassis_testing::clock()), chassis_testing::account());
    for begin in [0, 3] {
        let taken = Box::pin(three(&db, &account, at_once)).await.map(Result::unwrap);
        assert_eq!(taken, [1, 2, 3].map(|place| Taken::InLine(begin + place)));
    }
}

#[tokio::test]
async fn those_behind_a_call_that_fails_form_a_new_line() {
    let database = bare::database().await;
    let (db, account) = (bare::open(&database, &chassis_testing::clock()), chassis_testing::account());
    let [first, second, third] = Box::pin(three(&db, &account, refused)).await;
    first.unwrap_err();
    let taken = BTreeSet::from([second.unwrap(), third.unwrap()].map(|taken| format!("{taken:?}")));
    let expected = [1, 2].map(|number| format!("{:?}", Taken::InLine(number)));
    assert_eq!(taken, BTreeSet::from(expected));
    assert_eq!(create(&db, &account, at_once).await.unwrap(), Taken::InLine(3));
}

#[tokio::test]
async fn a_number_that_another_replica_has_taken_is_not_taken_again() {
    let database = bare::database().await;
    let clock = chassis_testing::clock();
    let account = chassis_testing::account();
    let [here, there] = [bare::open(&database, &clock), bare::open(&database, &clock)];
    for (replica, taken) in [
        (&here, Taken::InLine(1)),
        (&there, Taken::InLine(2)),
        // It expected 2, and was refused. Then it looks before it expects.
        (&here, Taken::InLine(3)),
        (&there, Taken::InLine(4)),
        (&here, Taken::InLine(5)),
        (&there, Taken::InLine(6)),
    ] {
        assert_eq!(create(replica, &account, at_once).await.unwrap(), taken);
    }
}

#[tokio::test]
async fn a_line_that_another_replica_has_disturbed_is_in_order_again_while_calls_go_on() {
    const CALLERS: usize = 4;
    const CALLS: usize = 10;
    let database = bare::database().await;
    let (clock, account) = (chassis_testing::clock(), chassis_testing::account());
    let [here, there] = [bare::open(&database, &clock), bare::open(&database, &clock)];
    create(&here, &account, at_once).await.unwrap();
    create(&there, &account, at_once).await.unwrap();
    let runs = AtomicUsize::new(0);
    let caller = async || {
        for _ in 0..CALLS {
            let count = async |_| {
                runs.fetch_add(1, Ordering::Relaxed);
                // The others come in between.
                tokio::task::yield_now().await;
                Ok(())
            };
            create(&here, &account, count).await.unwrap();
        }
    };
    join_all((0..CALLERS).map(|_| caller())).await;
    let repeated = runs.load(Ordering::Relaxed) - CALLERS * CALLS;
    assert!(
        (1..=CALLERS).contains(&repeated),
        "{repeated} calls were repeated: each that stood in line, once"
    );
}

#[tokio::test]
async fn many_calls_of_two_replicas_leave_no_gap() {
    let database = bare::database().await;
    let clock = chassis_testing::clock();
    let account = chassis_testing::account();
    let replicas = [bare::open(&database, &clock), bare::open(&database, &clock)];
    let calls = (0..60).map(|index| {
        let (replica, account) = (&replicas[index % 2], &account);
        async move {
            let is_refused = index % 5 == 0;
            let rest = async |taken| if is_refused { refused(taken).await } else { Ok(()) };
            create(replica, account, rest).await.ok()
        }
    });
    let taken = join_all(calls).await.into_iter().flatten();
    let numbers: Vec<i64> = taken
        .map(|taken| match taken {
            Taken::InTransaction(number) | Taken::InLine(number) => number,
        })
        .collect();
    let expected: BTreeSet<i64> = (1..=48).collect();
    assert_eq!((numbers.len(), numbers.into_iter().collect::<BTreeSet<_>>()), (48, expected));
}
