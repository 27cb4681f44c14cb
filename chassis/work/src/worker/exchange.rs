//! Wake-ups between the processes of a service. Each appends the accounts of its commits to a table that stays on one
//! node, and reads what the others have appended since: one statement at each poll, however many accounts there are.
//!
//! What is in the table is a hint. It may be lost with the server or its writer; a sweep finds the work then.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chassis_base::error::chain;
use chassis_base::{AccountId, Error};
use chassis_data::{Db, post_wake_up};
use tokio::time::Instant;
use uuid::Uuid;

use super::board::Boards;
use super::stop::{Stop, in_time, told_to_stop};
use super::wake::ALL;
use crate::interval::every;

/// The least time between two posts of a process.
const POST_INTERVAL: Duration = Duration::from_millis(100);
/// How long a process is remembered of which nothing was read. Of one that posts again after that all accounts are looked at.
const REMEMBERED: Duration = Duration::from_hours(1);
/// More accounts than this are not listed: whoever reads that sweeps.
const MAX_LISTED: usize = 1000;

pub(super) struct Exchange {
    db: Db,
    boards: Arc<Boards>,
    poll: Duration,
    process: Uuid,
    /// The number of the last post.
    posted: i64,
    post_at: Instant,
    /// The last post read of each of the others, and when.
    read: HashMap<Uuid, (i64, Instant)>,
}

impl Exchange {
    pub(super) fn new(db: Db, boards: Arc<Boards>, poll: Duration) -> Self {
        let process = Uuid::new_v4();
        Self { db, boards, poll, process, posted: 0, post_at: Instant::now(), read: HashMap::new() }
    }

    pub(super) async fn run(mut self, mut stop: Stop) {
        let boards = Arc::clone(&self.boards);
        let mut beat = every(self.poll);
        loop {
            tokio::select! {
                () = told_to_stop(&mut stop) => break,
                _ = beat.tick() => {
                    if let Err(error) = in_time(self.receive()).await {
                        tracing::warn!(error = chain(&error), "wake-ups of other processes could not be read");
                    }
                }
                () = boards.inbox.departing.notified() => {
                    tokio::time::sleep_until(self.post_at).await;
                    self.post().await;
                }
            }
        }
        // What the last requests have left behind.
        self.post().await;
    }

    /// Tells the others of what they, too, may have work for.
    async fn post(&mut self) {
        self.post_at = Instant::now() + POST_INTERVAL;
        let mut accounts: Vec<Uuid> = self
            .boards
            .inbox
            .take_outgoing()
            .into_iter()
            .filter(|account| !self.boards.has_all_of(*account))
            .map(AccountId::uuid)
            .collect();
        if accounts.is_empty() {
            return;
        }
        if accounts.len() > MAX_LISTED {
            accounts.clear();
        }
        self.posted += 1;
        if let Err(error) = post_wake_up(&self.db, self.process, self.posted, &accounts).await {
            // The number is taken, so that the others notice.
            tracing::warn!(error = chain(&error), "other processes were not told of new work");
        }
    }

    async fn receive(&mut self) -> Result<(), Error> {
        self.read.retain(|_, (_, at)| at.elapsed() < REMEMBERED);
        let (known, numbers): (Vec<Uuid>, Vec<i64>) =
            self.read.iter().map(|(id, (number, _))| (*id, *number)).unzip();
        let posts = self.db.read(async |connection| {
            let posts: Vec<(Uuid, i64, Vec<Uuid>)> = sqlx::query_as(
                "select post.process, post.number, post.accounts from wake_up post
                 left join unnest($1::uuid[], $2::bigint[]) as known (process, number) on known.process = post.process
                 where post.process <> $3 and post.number > coalesce(known.number, 0)
                 order by post.process, post.number",
            )
            .bind(known)
            .bind(numbers)
            .bind(self.process)
            .fetch_all(&mut *connection)
            .await?;
            Ok::<_, Error>(posts)
        }).await?;
        for (process, number, accounts) in posts {
            let before = self.read.insert(process, (number, Instant::now())).map_or(0, |(number, _)| number);
            if number > before + 1 || accounts.is_empty() {
                self.boards.ask_for_sweeps();
            }
            for account in accounts {
                self.boards.inbox.wake(AccountId::trust(account), ALL);
            }
        }
        Ok(())
    }
}
