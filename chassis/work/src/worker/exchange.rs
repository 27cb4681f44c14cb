//! Wake-ups between the processes of a service. Each process appends the accounts of its commits to a table that stays
//! on one node, and reads what other processes have appended: one statement per poll, whatever the number of accounts.
//! The only replica has nobody to hear from but commands, and polls less often.
//!
//! The rows are hints. They may be lost when the server or their writer crashes; then a sweep finds the work.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chassis_base::error::chain;
use chassis_base::{AccountId, Error};
use chassis_data::{Db, post_wake_up};
use tokio::time::Instant;
use uuid::Uuid;

use super::board::Boards;
use super::stop::{Stop, in_time, stopped};
use crate::interval::every;

/// The minimum time between two posts of a process.
const POST_INTERVAL: Duration = Duration::from_millis(100);
/// The wait before a post that failed is repeated.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The only replica reads once in this many polls.
const POLLS_WHEN_ALONE: u32 = 20;
/// How long the position of a silent process is remembered. If that process posts again later, a sweep follows.
const REMEMBERED: Duration = Duration::from_hours(1);
/// A post with more accounts than this is empty instead, which makes its readers sweep.
const MAX_LISTED: usize = 1000;

pub(super) struct Exchange {
    db: Db,
    boards: Arc<Boards>,
    poll: Duration,
    receive_at: Instant,
    process: Uuid,
    /// The number of the last post.
    posted: i64,
    post_at: Instant,
    /// The number of the last post read from each other process, and when it was read.
    read: HashMap<Uuid, (i64, Instant)>,
}

impl Exchange {
    pub(super) fn new(db: Db, boards: Arc<Boards>, poll: Duration) -> Self {
        let (process, now) = (Uuid::new_v4(), Instant::now());
        Self { db, boards, poll, receive_at: now, process, posted: 0, post_at: now, read: HashMap::new() }
    }

    pub(super) async fn run(mut self, mut stop: Stop) {
        let boards = Arc::clone(&self.boards);
        let mut ticker = every(self.poll);
        loop {
            tokio::select! {
                () = stopped(&mut stop) => break,
                _ = ticker.tick() => self.receive_if_due().await,
                () = boards.inbox.departing.notified() => {
                    tokio::time::sleep_until(self.post_at).await;
                    self.post().await;
                }
            }
        }
        // The commits that have not been announced yet.
        self.post().await;
    }

    /// Announces accounts for which other processes may have work.
    async fn post(&mut self) {
        self.post_at = Instant::now() + POST_INTERVAL;
        let mut accounts = self.boards.inbox.take_outgoing();
        accounts.retain(|account| !self.boards.has_all_of(*account));
        if accounts.is_empty() {
            return;
        }
        let is_listed = accounts.len() <= MAX_LISTED;
        let listed: Vec<Uuid> = accounts.iter().filter(|_| is_listed).map(|account| account.uuid()).collect();
        self.posted += 1;
        if let Err(error) = post_wake_up(&self.db, self.process, self.posted, &listed).await {
            // The number stays used, because the post may be stored all the same: others see the gap and sweep.
            tracing::warn!(error = chain(&error), "posting a wake-up for other processes failed");
            self.boards.inbox.pass_on(accounts);
            self.post_at = Instant::now() + RETRY_INTERVAL;
        }
    }

    async fn receive_if_due(&mut self) {
        let now = Instant::now();
        // Checked at every poll, so that the first post of a new replica does not wait.
        if self.boards.is_only_replica() && now < self.receive_at {
            return;
        }
        self.receive_at = now + self.poll * POLLS_WHEN_ALONE;
        if let Err(error) = in_time(self.receive()).await {
            tracing::warn!(error = chain(&error), "wake-ups of other processes could not be read");
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
            // A gap in the numbers or an empty post means that some accounts are not listed.
            if number > before + 1 || accounts.is_empty() {
                self.boards.request_sweeps();
            }
            for account in accounts {
                self.boards.inbox.wake_prompt(AccountId::trust(account));
            }
        }
        Ok(())
    }
}
