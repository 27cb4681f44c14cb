//! Idle sessions of the pool. The session that was returned last is used first, so that under low load the rest stays
//! idle and reaches the timeout. A task closes expired sessions, so they are closed without any traffic too. The task
//! exists only while there are idle sessions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use super::session::{Session, close_all};

pub(super) struct Idle(Arc<Shared>);

struct Shared {
    timeout: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In order of their last use; the first has been idle for longest.
    sessions: Vec<Session>,
    /// The task that closes expired sessions; present whenever there are sessions.
    closing: Option<AbortHandle>,
}

impl Idle {
    /// `timeout` is how long an idle session is kept.
    pub(super) fn new(timeout: Duration) -> Self {
        Self(Arc::new(Shared { timeout, state: Mutex::default() }))
    }

    /// Takes the session that was used last.
    pub(super) fn take(&self) -> Option<Session> {
        self.0.lock().sessions.pop()
    }

    pub(super) fn take_all(&self) -> Vec<Session> {
        std::mem::take(&mut self.0.lock().sessions)
    }

    pub(super) fn put(&self, session: Session) {
        let mut state = self.0.lock();
        state.sessions.push(session);
        // At the end of the process there is no runtime any more, and sessions need not be closed.
        if state.closing.is_none()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let closing = runtime.spawn(close_expired(Arc::downgrade(&self.0), self.0.timeout));
            state.closing = Some(closing.abort_handle());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the expired sessions and returns them with the time of the next expiry. Without sessions that is `None`,
    /// and the task ends; `closing` is cleared under the same lock, so that the next `put` starts a new task.
    fn take_expired(&self) -> (Vec<Session>, Option<Instant>) {
        let mut state = self.lock();
        let expired = state.sessions.partition_point(|session| session.used().elapsed() >= self.timeout);
        let ended = state.sessions.drain(..expired).collect();
        let next = state.sessions.first().map(|session| session.used() + self.timeout);
        if next.is_none() {
            state.closing = None;
        }
        (ended, next)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(closing) = self.lock().closing.take() {
            closing.abort();
        }
    }
}

/// Closes expired sessions. The reference is weak, so that the task does not keep the pool alive.
async fn close_expired(idle: Weak<Shared>, timeout: Duration) {
    let mut next = Instant::now() + timeout;
    loop {
        tokio::time::sleep_until(next.into()).await;
        let Some((ended, later)) = idle.upgrade().map(|idle| idle.take_expired()) else { return };
        close_all(ended).await;
        let Some(later) = later else { return };
        next = later;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chassis_testing::{TestDatabase, eventually};
    use sqlx::migrate::Migrator;
    use sqlx::postgres::PgConnectOptions;

    static NONE: Migrator = Migrator::DEFAULT;

    async fn sessions(database: &TestDatabase) -> i64 {
        let sql = "select count(*) from pg_stat_activity where datname = current_database() and application_name = 'idle'";
        sqlx::query_scalar(sql).fetch_one(&mut database.connect().await).await.unwrap()
    }

    async fn put(idle: &Idle, database: &TestDatabase, count: usize) {
        let options: PgConnectOptions = database.url().parse().unwrap();
        let options = options.application_name("idle");
        for _ in 0..count {
            let until = Instant::now() + Duration::from_mins(1);
            idle.put(Session::connect(&options, until).await.unwrap());
        }
    }

    #[tokio::test]
    async fn a_quiet_process_closes_its_connections_by_itself_and_then_rests() {
        let database = TestDatabase::new(&[("bare", &NONE)]).await;
        let idle = Idle::new(Duration::from_millis(300));
        for _ in 0..2 {
            put(&idle, &database, 3).await;
            assert!(idle.0.lock().closing.is_some());
            eventually("the server has none of them", async || sessions(&database).await == 0).await;
            assert!(idle.take().is_none());
            eventually("the task has ended", async || idle.0.lock().closing.is_none()).await;
        }
    }

    #[tokio::test]
    async fn a_connection_in_use_is_kept_while_the_others_are_closed() {
        let database = TestDatabase::new(&[("bare", &NONE)]).await;
        let idle = Idle::new(Duration::from_millis(300));
        put(&idle, &database, 3).await;
        let used = idle.take().unwrap();
        eventually("the others are closed", async || sessions(&database).await == 1).await;
        idle.put(used);
        eventually("so is this one, when it is not needed either", async || sessions(&database).await == 0)
            .await;
    }

    #[tokio::test]
    async fn what_closes_them_ends_with_the_pool() {
        let database = TestDatabase::new(&[("bare", &NONE)]).await;
        let idle = Idle::new(Duration::from_hours(1));
        put(&idle, &database, 1).await;
        let closing = idle.0.lock().closing.clone().unwrap();
        assert!(!closing.is_finished());
        drop(idle);
        eventually("the task has ended", async || closing.is_finished()).await;
        eventually("so has its session", async || sessions(&database).await == 0).await;
    }
}
