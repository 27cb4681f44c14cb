//! What waits, measured for operators: how old the oldest undelivered event and mail are, and how many were given up.
//! Looks at the rows of all accounts, which a distributed database has to ask all its nodes for: one replica does, the
//! others say 0.

use std::collections::HashMap;
use std::time::Duration;

use chassis_base::Error;
use chassis_base::error::chain;
use chassis_data::Db;
use sqlx::PgConnection;

use crate::interval::every;

const MEASURE_INTERVAL: Duration = Duration::from_secs(30);

/// What waits, of all accounts.
#[derive(Default)]
struct Backlog {
    /// For each listener.
    events: HashMap<String, Waiting>,
    mails: Waiting,
}

/// What waits in one queue.
#[derive(Default, sqlx::FromRow)]
struct Waiting {
    /// How old the oldest is.
    age_seconds: Option<f64>,
    /// How many were given up.
    dead: i64,
}

#[derive(sqlx::FromRow)]
struct WaitingEvents {
    listener: String,
    #[sqlx(flatten)]
    waiting: Waiting,
}

/// Measures until the process ends, as long as `is_first` says that no other replica does.
pub async fn watch(db: Db, is_first: impl Fn() -> bool) {
    let mut beat = every(MEASURE_INTERVAL);
    loop {
        beat.tick().await;
        let measured = if is_first() { measure(&db).await } else { Ok(Backlog::default()) };
        match measured {
            Ok(backlog) => show(&db, backlog),
            Err(error) => tracing::warn!(error = chain(&error), "what waits could not be measured"),
        }
    }
}

async fn measure(db: &Db) -> Result<Backlog, Error> {
    let now = db.clock().now();
    let read = async |connection: &mut PgConnection| {
        let events: Vec<WaitingEvents> = sqlx::query_as(
            "select listener,
                extract(epoch from $1 - min(occurred_at) filter (where dead_at is null))::float8 as age_seconds,
                count(*) filter (where dead_at is not null) as dead
             from outbox group by listener",
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
        let events = events.into_iter().map(|of| (of.listener, of.waiting)).collect();
        Ok(Backlog { events, mails })
    };
    db.read(read).await
}

fn show(db: &Db, Backlog { mut events, mails }: Backlog) {
    // Also those for whom nothing waits: a gauge keeps what it was last told.
    for listener in db.listeners() {
        events.entry(listener.name.clone()).or_default();
    }
    for (listener, waiting) in events {
        metrics::gauge!("outbox_age_seconds", "listener" => listener.clone())
            .set(waiting.age_seconds.unwrap_or_default());
        metrics::gauge!("outbox_dead_letters", "listener" => listener).set(as_f64(waiting.dead));
    }
    metrics::gauge!("mail_age_seconds").set(mails.age_seconds.unwrap_or_default());
    metrics::gauge!("mail_dead_letters").set(as_f64(mails.dead));
}

fn as_f64(count: i64) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
