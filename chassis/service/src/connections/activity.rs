//! The activity of one connection: its requests in progress, how long it has been silent, and whether its client reads
//! the response. This decides when the connection is closed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::settings::Timeouts;

/// Why this process closes a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The head of a request did not arrive in time.
    Head,
    /// There was no request for too long.
    Idle,
    /// The client does not read the response.
    Write,
    /// The connection was idle longest when the limit was reached.
    Crowded,
    /// The connection is so old that its certificate must be verified again.
    Old,
    /// The process stops.
    Stop,
}

impl End {
    /// The label in metrics; `None` for ends that are not the client's doing.
    pub(super) fn reason(self) -> Option<&'static str> {
        match self {
            Self::Head => Some("head_timeout"),
            Self::Idle => Some("idle_timeout"),
            Self::Write => Some("write_timeout"),
            Self::Crowded => Some("crowded"),
            Self::Old | Self::Stop => None,
        }
    }
}

/// Shared by the connection, its requests and [`Permits`](super::permits::Permits).
pub(super) struct Activity {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    requests: u32,
    /// Whether the connection has had a request.
    used: bool,
    http1: bool,
    /// The time since which no request is in progress.
    idle_since: Instant,
    /// When the first byte of an incomplete HTTP/1 head arrived.
    head_since: Option<Instant>,
    /// Responses of which a part was handed over and the next not requested yet, each with the time since then.
    untaken: Vec<(u64, Instant)>,
    next: u64,
    crowded: bool,
}

/// The result of a check: close the connection, or check again later.
#[derive(Debug, PartialEq, Eq)]
enum Check {
    End(End),
    Again(Instant),
}

impl Activity {
    pub(super) fn new() -> Arc<Self> {
        let state = State {
            requests: 0,
            used: false,
            http1: false,
            idle_since: Instant::now(),
            head_since: None,
            untaken: Vec::new(),
            next: 0,
            crowded: false,
        };
        Arc::new(Self { state: Mutex::new(state), changed: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves when the connection must be closed. `last` is set when the process stops: the time until which one more
    /// request may arrive.
    pub(super) async fn end(&self, timeouts: &Timeouts, mut last: watch::Receiver<Option<Instant>>) -> End {
        loop {
            let until = *last.borrow_and_update();
            let again = match self.state().check(Instant::now(), timeouts, until) {
                Check::End(end) => return end,
                Check::Again(at) => at,
            };
            tokio::select! {
                () = tokio::time::sleep_until(again) => {}
                () = self.changed.notified() => {}
                // Without a sender, `last` never changes, and this branch is disabled.
                Ok(()) = last.changed() => {}
            }
        }
    }

    /// Makes [`end`](Self::end) check again immediately.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Closes the connection to make room for another.
    pub(super) fn evict(&self) {
        self.state().crowded = true;
        self.wake();
    }

    /// The order in which connections are closed to make room: those without any request first, then those idle
    /// longest. `None` while a request is in progress.
    pub(super) fn idle(&self) -> Option<(bool, Instant)> {
        let state = self.state();
        (state.requests == 0).then_some((state.used, state.idle_since))
    }

    pub(super) fn is_used(&self) -> bool {
        self.state().used
    }

    /// Records that bytes arrived from the client.
    pub(super) fn record_read(&self) {
        let mut state = self.state();
        // Over HTTP/2 other frames arrive between requests, so a read does not mean that a head has begun.
        if state.http1 && state.requests == 0 && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    /// Records that bytes were written to the client.
    pub(super) fn record_written(&self) {
        let mut state = self.state();
        // Over HTTP/1 this is the buffered rest of a response. Over HTTP/2 it may be the reply to a ping.
        if state.http1 && state.requests == 0 {
            state.idle_since = Instant::now();
        }
    }
}

impl State {
    fn check(&self, now: Instant, timeouts: &Timeouts, last: Option<Instant>) -> Check {
        let (end, at) = if self.crowded {
            (End::Crowded, now)
        } else if self.requests > 0 {
            match self.untaken.iter().map(|(_, since)| *since).min() {
                _ if last.is_some() => (End::Stop, now),
                Some(since) if since + timeouts.write <= now => (End::Write, since + timeouts.write),
                _ => return Check::Again(now + timeouts.write.min(timeouts.idle).min(timeouts.head)),
            }
        } else {
            self.silent(now, timeouts, last)
        };
        // A read does not wake `end`, so the check is repeated in time for a head that begins meanwhile.
        if at <= now { Check::End(end) } else { Check::Again(at.min(now + timeouts.head)) }
    }

    fn silent(&self, now: Instant, timeouts: &Timeouts, last: Option<Instant>) -> (End, Instant) {
        let (end, at) = match self.head_since {
            _ if !self.used => (End::Head, self.idle_since + timeouts.head),
            Some(since) => (End::Head, (since + timeouts.head).min(self.idle_since + timeouts.idle)),
            None => (End::Idle, self.idle_since + timeouts.idle),
        };
        match last {
            // Over HTTP/2, GOAWAY loses no request; over HTTP/1 a request may be in flight.
            Some(_) if self.used && !self.http1 => (End::Stop, now),
            Some(last) if last < at => (End::Stop, last),
            _ => (end, at),
        }
    }
}

/// A request in progress, from its head until the last part of its response was taken.
pub(super) struct InProgress {
    activity: Arc<Activity>,
    id: u64,
}

impl InProgress {
    pub(super) fn begin(activity: &Arc<Activity>, http1: bool) -> Self {
        let mut state = activity.state();
        state.requests += 1;
        state.used = true;
        state.http1 = http1;
        state.head_since = None;
        state.next += 1;
        Self { activity: Arc::clone(activity), id: state.next }
    }

    /// Records that a part of the response was handed to the connection.
    pub(super) fn hand_over(&self) {
        self.activity.state().untaken.push((self.id, Instant::now()));
    }

    /// Records that the connection asks for the next part.
    pub(super) fn taken(&self) {
        self.activity.state().untaken.retain(|(id, _)| *id != self.id);
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.requests = state.requests.saturating_sub(1);
        state.idle_since = Instant::now();
        state.untaken.retain(|(id, _)| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        head: Duration::from_secs(10),
        idle: Duration::from_secs(75),
        write: Duration::from_secs(30),
    };

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// The end that a check finds `after` seconds from now.
    fn end(activity: &Activity, after: u64, last: Option<Instant>) -> Option<End> {
        match activity.state().check(Instant::now() + seconds(after), &TIMEOUTS, last) {
            Check::End(end) => Some(end),
            Check::Again(_) => None,
        }
    }

    #[tokio::test]
    async fn a_connection_has_its_time_for_each_kind_of_silence() {
        let activity = Activity::new();
        let after = |after: u64| end(&activity, after, None);
        assert_eq!((after(9), after(11)), (None, Some(End::Head)));
        let request = InProgress::begin(&activity, true);
        assert_eq!(after(100), None, "the client waits for the response");
        request.hand_over();
        assert_eq!((after(29), after(31)), (None, Some(End::Write)));
        request.taken();
        assert_eq!(after(31), None);
        drop(request);
        assert_eq!((after(74), after(76)), (None, Some(End::Idle)));
        activity.record_read();
        assert_eq!((after(9), after(11)), (None, Some(End::Head)), "an incomplete head");
        activity.evict();
        assert_eq!(after(0), Some(End::Crowded));
    }

    #[tokio::test]
    async fn a_stop_waits_for_one_more_request_where_it_cannot_be_told() {
        let last = Some(Instant::now() + seconds(5));
        let (fresh, http1, http2) = (Activity::new(), Activity::new(), Activity::new());
        drop(InProgress::begin(&http1, true));
        let request = InProgress::begin(&http2, false);
        assert_eq!(end(&http2, 0, last), Some(End::Stop), "requests in progress are finished");
        drop(request);
        assert_eq!(end(&http2, 0, last), Some(End::Stop));
        for activity in [&fresh, &http1] {
            assert_eq!((end(activity, 0, last), end(activity, 6, last)), (None, Some(End::Stop)));
        }
    }
}
