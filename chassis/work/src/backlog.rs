//! Backlog metrics for operators: the age of the oldest undelivered event and mail, and the number of dead letters. The
//! queries read the rows of all accounts, on all nodes of a distributed database, so only one replica runs them and the
//! rest report 0.

use std::collections::HashMap;
use std::time::Duration;

use chassis_base::Error;
use chassis_base::error::chain;
use chassis_data::Db;
use sqlx::PgConnection;

use crate::interval::every;

const MEASURE_INTERVAL: Duration = Duration::from_secs(30);

/// The backlog of all accounts.
#[derive(Default)]
struct Backlog {
    /// By listener.
    events: HashMap<String, Queue>,
    mails: Queue,
}

/// The backlog of one queue.
#[derive(Default, chassis_derive::FromRow)]
struct Queue {
    /// The age of the oldest entry.
    age_seconds: Option<f64>,
    /// The number of dead letters.
    dead: i64,
}

#[derive(chassis_derive::FromRow)]
struct EventQueue {
    listener: String,
    #[sqlx(flatten)]
    queue: Queue,
}

/// Measures until the process ends, while `is_first` says that this replica is the one to do it.
pub async fn watch(db: Db, is_first: impl Fn() -> bool) {
    let mut ticker = every(MEASURE_INTERVAL);
    loop {
        ticker.tick().await;
        let measured = if is_first() { measure(&db).await } else { Ok(Backlog::default()) };
        match measured {
            Ok(backlog) => publish(&db, backlog),
            Err(error) => tracing::warn!(error = chain(&error), "the backlog could not be measured"),
        }
    }
}

async fn measure(db: &Db) -> Result<Backlog, Error> {
    let now = db.clock().now();
    let read = async |connection: &mut PgConnection| {
        let events: Vec<EventQueue> = sqlx::query_as(
            "select listener, extract(epoch from $1 - min(since))::float8 as age_seconds, sum(dead)::bigint as dead from (
                select name as listener, since, 0 as dead from reader where target > position
                union all
                select reader, case when dead_at is null then at end, (dead_at is not null)::int from reader_exception
                union all
                select listener, case when dead_at is null then occurred_at end, (dead_at is not null)::int from outbox
             ) waiting group by listener",
        )
        .bind(now)
        .fetch_all(&mut *connection)
        .await?;
        let mails = sqlx::query_as(
            "select
                (select extract(epoch from $1 - min(created_at))::float8 from mail where status = 'queued')
                    as age_seconds,
                (select count(*) from mail where status = 'dead') as dead",
        )
        .bind(now)
        .fetch_one(&mut *connection)
        .await?;
        let events = events.into_iter().map(|of| (of.listener, of.queue)).collect();
        Ok(Backlog { events, mails })
    };
    db.read(read).await
}

fn publish(db: &Db, Backlog { mut events, mails }: Backlog) {
    // Listeners without a backlog are set to 0, because a gauge keeps its last value.
    for listener in db.listeners() {
        events.entry(listener.name.clone()).or_default();
    }
    for (listener, queue) in events {
        metrics::gauge!("event_age_seconds", "listener" => listener.clone())
            .set(queue.age_seconds.unwrap_or_default());
        metrics::gauge!("event_dead_letters", "listener" => listener).set(as_f64(queue.dead));
    }
    metrics::gauge!("mail_age_seconds").set(mails.age_seconds.unwrap_or_default());
    metrics::gauge!("mail_dead_letters").set(as_f64(mails.dead));
}

fn as_f64(count: i64) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
