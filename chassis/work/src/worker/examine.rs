//! Examines the accounts that were woken: one query for each returns when all workers of the process are next due.
//!
//! The query concerns one account and so one node of a distributed database. An account whose node does not answer
//! becomes a suspect and is retried separately, so that accounts on other nodes do not wait for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chassis_base::error::chain;
use chassis_base::{AccountId, Error};
use chassis_data::db::Db;
use chassis_data::pool::Connection;
use chrono::TimeDelta;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::backoff::backoff;
use super::board::{Boards, Found};
use super::due::{Answer, Question};
use super::stop::{Stop, gone, in_time, stopped};
use super::wake::Which;
use crate::interval::every;

/// The minimum time between two rounds, however often the process commits.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// How long one query may delay the accounts behind it.
const QUERY_TIMEOUT: Duration = Duration::from_secs(1);
/// How many suspects are retried in parallel, and after which wait.
const MAX_PARALLEL_RETRIES: usize = 2;
const INITIAL_BACKOFF: TimeDelta = TimeDelta::milliseconds(500);
const MAX_BACKOFF: TimeDelta = TimeDelta::seconds(30);

/// The prepared queries: one for all workers that commits wake, and one for each single worker.
struct Questions {
    prompt: Which,
    all_prompt: Question,
    single: Vec<Question>,
}

impl Questions {
    fn new(boards: &Boards) -> Self {
        let prompt = || boards.all.iter().enumerate().filter(|(_, board)| board.is_prompt);
        Self {
            prompt: prompt().fold(0, |which, (number, _)| which | 1 << number),
            all_prompt: Question::new(prompt().map(|(number, board)| (number, &board.due))),
            single: boards
                .all
                .iter()
                .enumerate()
                .map(|(number, board)| Question::new([(number, &board.due)]))
                .collect(),
        }
    }

    /// The queries that cover these workers. One about a single worker is cheaper than the one about all of them.
    fn about(&self, which: Which) -> impl Iterator<Item = &Question> {
        let has_several = (which & self.prompt).count_ones() > 1;
        let prompt = has_several.then_some(&self.all_prompt);
        let others = if has_several { which & !self.prompt } else { which };
        let others = self.single.iter().enumerate().filter(move |(number, _)| others & 1 << number != 0);
        prompt.into_iter().chain(others.map(|(_, question)| question))
    }
}

/// An account whose query failed.
#[derive(Default)]
struct Suspect {
    which: Which,
    failures: u32,
    /// `None` while a retry runs.
    retry_at: Option<Instant>,
}

pub(super) struct Examiner {
    db: Db,
    boards: Arc<Boards>,
    poll: Duration,
    questions: Arc<Questions>,
    suspects: HashMap<AccountId, Suspect>,
    retries: JoinSet<(AccountId, Which, Result<Vec<Answer>, Error>)>,
    next_at: Instant,
}

impl Examiner {
    pub(super) fn new(db: Db, boards: Arc<Boards>, poll: Duration) -> Self {
        let questions = Arc::new(Questions::new(&boards));
        let (suspects, retries) = (HashMap::new(), JoinSet::new());
        Self { db, boards, poll, questions, suspects, retries, next_at: Instant::now() }
    }

    pub(super) async fn run(mut self, mut stop: Stop) {
        let boards = Arc::clone(&self.boards);
        let mut ticker = every(self.poll);
        loop {
            tokio::select! {
                () = stopped(&mut stop) => break,
                () = boards.inbox.arrived.notified() => {
                    tokio::time::sleep_until(self.next_at).await;
                    self.next_at = Instant::now() + MIN_POLL_INTERVAL;
                    self.examine_woken().await;
                    // While there are suspects, the ticker does it.
                    if self.suspects.is_empty() {
                        self.start_retries();
                    }
                }
                Some(Ok((account, which, answers))) = self.retries.join_next() => self.finish_retry(account, which, answers),
                _ = ticker.tick(), if !self.suspects.is_empty() => self.start_retries(),
            }
        }
    }

    async fn examine_woken(&mut self) {
        let mut connection = None;
        for (account, which) in self.boards.inbox.take_woken() {
            if let Some(suspect) = self.suspects.get_mut(&account) {
                suspect.which |= which;
                continue;
            }
            let which = which & self.boards.holders(account);
            if which == 0 {
                continue;
            }
            let query = ask(&self.db, &self.questions, &mut connection, account, which);
            match tokio::time::timeout(QUERY_TIMEOUT, query).await.unwrap_or_else(|_| Err(gone())) {
                Ok(answers) => self.publish(answers),
                Err(error) => {
                    // A statement may have been cancelled halfway, so the pool must check the connection.
                    connection = None;
                    self.failed(account, which, &error);
                }
            }
        }
        if let Some(connection) = connection {
            connection.done();
        }
    }

    fn publish(&self, answers: Vec<Answer>) {
        for Answer { account, asked, due } in answers {
            for (number, at) in due {
                if let Some(board) = self.boards.all.get(number).filter(|board| board.holds(account.id)) {
                    board.report(Found { account: Arc::clone(&account), asked, at });
                }
            }
        }
    }

    fn failed(&mut self, account: AccountId, which: Which, error: &Error) {
        let suspect = self.suspects.entry(account).or_default();
        suspect.failures = suspect.failures.saturating_add(1);
        suspect.which |= which;
        let wait = backoff(suspect.failures, INITIAL_BACKOFF, MAX_BACKOFF).to_std().unwrap_or_default();
        suspect.retry_at = Some(Instant::now() + wait);
        if suspect.failures == 1 {
            tracing::warn!(%account, error = chain(error), "due work could not be found");
        }
    }

    /// Starts the retries that are due, up to the limit.
    fn start_retries(&mut self) {
        for (account, which) in self.boards.inbox.take_suspects() {
            let suspect = self
                .suspects
                .entry(account)
                .or_insert_with(|| Suspect { retry_at: Some(Instant::now()), ..Suspect::default() });
            suspect.which |= which;
        }
        let now = Instant::now();
        let free = MAX_PARALLEL_RETRIES.saturating_sub(self.retries.len());
        let ready =
            self.suspects.iter_mut().filter(|(_, suspect)| suspect.retry_at.is_some_and(|at| at <= now));
        for (account, suspect) in ready.take(free) {
            suspect.retry_at = None;
            let account = *account;
            let which = std::mem::take(&mut suspect.which) & self.boards.holders(account);
            let (db, questions) = (self.db.clone(), Arc::clone(&self.questions));
            self.retries.spawn(async move {
                let mut connection = None;
                let answers = in_time(ask(&db, &questions, &mut connection, account, which)).await;
                if let (Some(connection), Ok(_)) = (connection, &answers) {
                    connection.done();
                }
                (account, which, answers)
            });
        }
    }

    fn finish_retry(&mut self, account: AccountId, which: Which, answers: Result<Vec<Answer>, Error>) {
        match answers {
            Ok(answers) => {
                self.publish(answers);
                // Wake-ups that arrived during the retry are examined as usual.
                if let Some(suspect) = self.suspects.remove(&account).filter(|suspect| suspect.which != 0) {
                    self.boards.inbox.wake(account, suspect.which);
                }
            }
            Err(error) => self.failed(account, which, &error),
        }
        self.start_retries();
    }
}

async fn ask(
    db: &Db,
    questions: &Questions,
    connection: &mut Option<Connection>,
    account: AccountId,
    which: Which,
) -> Result<Vec<Answer>, Error> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(db.acquire().await?),
    };
    let mut answers = Vec::new();
    for question in questions.about(which) {
        answers.push(question.ask(connection, account).await?);
    }
    Ok(answers)
}
