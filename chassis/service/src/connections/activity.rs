//! What one connection is doing: how many requests it has in progress, for how long it has been silent, and whether its
//! client takes what it asked for. From that follows when it ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::settings::Timeouts;

/// Why a connection is ended from this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It did not bring the head of a request in time.
    Head,
    /// It had no request for long.
    Idle,
    /// Its client does not take the answer.
    Write,
    /// It was idle for longest when there was no room for another one.
    Crowded,
    /// It is so old that its certificate should be looked at again.
    Old,
    /// The process stops.
    Stop,
}

impl End {
    /// For metrics; `None` for ends that are nobody's fault.
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

/// Shared by the connection, its requests, and whoever counts connections.
pub(super) struct Activity {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    requests: u32,
    /// Whether it has ever brought a request.
    used: bool,
    http1: bool,
    /// Since when there is no request in progress.
    idle_since: Instant,
    /// When the first byte of an HTTP/1 request came whose head is not complete.
    head_since: Option<Instant>,
    /// Answers of which a part was handed over and the next not asked for yet, and since when.
    untaken: Vec<(u64, Instant)>,
    next: u64,
    crowded: bool,
}

/// What a look at a connection says.
#[derive(Debug, PartialEq, Eq)]
enum Look {
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

    /// Resolves when the connection is to be ended. `last` says until when a connection of a process that stops may
    /// bring one more request.
    pub(super) async fn end(&self, timeouts: &Timeouts, mut last: watch::Receiver<Option<Instant>>) -> End {
        loop {
            let until = *last.borrow_and_update();
            let again = match self.state().look(Instant::now(), timeouts, until) {
                Look::End(end) => return end,
                Look::Again(at) => at,
            };
            tokio::select! {
                () = tokio::time::sleep_until(again) => {}
                () = self.changed.notified() => {}
                // Without a sender nothing stops.
                Ok(()) = last.changed() => {}
            }
        }
    }

    /// Has it looked at again at once.
    pub(super) fn wake(&self) {
        self.changed.notify_one();
    }

    /// Ends it for want of room.
    pub(super) fn crowd_out(&self) {
        self.state().crowded = true;
        self.wake();
    }

    /// How little it would be missed: first those that never asked for anything, of these the longest idle. `None` while
    /// it has a request.
    pub(super) fn idle(&self) -> Option<(bool, Instant)> {
        let state = self.state();
        (state.requests == 0).then_some((state.used, state.idle_since))
    }

    pub(super) fn is_used(&self) -> bool {
        self.state().used
    }

    /// Bytes came from the client.
    pub(super) fn note_read(&self) {
        let mut state = self.state();
        // Over HTTP/2 anything may come between requests, and the head of one is bound to arrive in one piece.
        if state.http1 && state.requests == 0 && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    /// Bytes went to the client.
    pub(super) fn note_written(&self) {
        let mut state = self.state();
        // The rest of an answer that is already out of our hands. Over HTTP/2 it may be the echo of a ping.
        if state.http1 && state.requests == 0 {
            state.idle_since = Instant::now();
        }
    }
}

impl State {
    fn look(&self, now: Instant, timeouts: &Timeouts, last: Option<Instant>) -> Look {
        let (end, at) = if self.crowded {
            (End::Crowded, now)
        } else if self.requests > 0 {
            match self.untaken.iter().map(|(_, since)| *since).min() {
                _ if last.is_some() => (End::Stop, now),
                Some(since) if since + timeouts.write <= now => (End::Write, since + timeouts.write),
                _ => return Look::Again(now + timeouts.write.min(timeouts.idle).min(timeouts.head)),
            }
        } else {
            self.silent(now, timeouts, last)
        };
        // The head of another request may begin while nobody looks.
        if at <= now { Look::End(end) } else { Look::Again(at.min(now + timeouts.head)) }
    }

    fn silent(&self, now: Instant, timeouts: &Timeouts, last: Option<Instant>) -> (End, Instant) {
        let (end, at) = match self.head_since {
            _ if !self.used => (End::Head, self.idle_since + timeouts.head),
            Some(since) => (End::Head, (since + timeouts.head).min(self.idle_since + timeouts.idle)),
            None => (End::Idle, self.idle_since + timeouts.idle),
        };
        match last {
            // Over HTTP/2 whoever is told to go loses nothing; otherwise a request may be on its way.
            Some(_) if self.used && !self.http1 => (End::Stop, now),
            Some(last) if last < at => (End::Stop, last),
            _ => (end, at),
        }
    }
}

/// A request from its head to the last byte of its answer that was handed over.
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

    /// A part of the answer is there for the client.
    pub(super) fn hand_over(&self) {
        self.activity.state().untaken.push((self.id, Instant::now()));
    }

    /// The connection asks for the next part.
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

    /// How it ends when somebody looks at it so long after now.
    fn end(activity: &Activity, after: u64, last: Option<Instant>) -> Option<End> {
        match activity.state().look(Instant::now() + seconds(after), &TIMEOUTS, last) {
            Look::End(end) => Some(end),
            Look::Again(_) => None,
        }
    }

    #[tokio::test]
    async fn a_connection_has_its_time_for_each_kind_of_silence() {
        let activity = Activity::new();
        let after = |after: u64| end(&activity, after, None);
        assert_eq!((after(9), after(11)), (None, Some(End::Head)));
        let request = InProgress::begin(&activity, true);
        assert_eq!(after(100), None, "it waits for us");
        request.hand_over();
        assert_eq!((after(29), after(31)), (None, Some(End::Write)));
        request.taken();
        assert_eq!(after(31), None);
        drop(request);
        assert_eq!((after(74), after(76)), (None, Some(End::Idle)));
        activity.note_read();
        assert_eq!((after(9), after(11)), (None, Some(End::Head)), "half a head");
        activity.crowd_out();
        assert_eq!(after(0), Some(End::Crowded));
    }

    #[tokio::test]
    async fn a_stop_waits_for_one_more_request_where_it_cannot_be_told() {
        let last = Some(Instant::now() + seconds(5));
        let (fresh, http1, http2) = (Activity::new(), Activity::new(), Activity::new());
        drop(InProgress::begin(&http1, true));
        let request = InProgress::begin(&http2, false);
        assert_eq!(end(&http2, 0, last), Some(End::Stop), "what is in progress is finished");
        drop(request);
        assert_eq!(end(&http2, 0, last), Some(End::Stop));
        for activity in [&fresh, &http1] {
            assert_eq!((end(activity, 0, last), end(activity, 6, last)), (None, Some(End::Stop)));
        }
    }
}
