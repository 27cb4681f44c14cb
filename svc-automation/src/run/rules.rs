//! What follows when a step has been tried. Pure, but for the random part of a wait.

use chassis_work::worker::backoff;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::prepare::LONGEST_WAIT;
use super::{Outcome, Status};
use crate::duration;
use crate::flow::definition::{DEFAULT_ATTEMPTS, Kind, OnError, Step};
use crate::flow::graph::{Graph, Node};

const FIRST_WAIT: TimeDelta = TimeDelta::seconds(2);
const MOST_WAIT: TimeDelta = TimeDelta::minutes(10);
const TIMEOUT: TimeDelta = TimeDelta::seconds(10);
/// Keys of calls are remembered for a day. After that nobody could tell whether a call was made.
pub(crate) const CERTAIN_FOR: TimeDelta = TimeDelta::hours(23);
/// Characters of a stored error.
const MAX_ERROR: usize = 1000;

/// How a try ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    Done(Value),
    Branch(bool),
    Wait(DateTime<Utc>),
    Ask(Option<DateTime<Utc>>),
    /// Nobody has decided in time.
    Expired,
    Failed(Failure),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub error: String,
    /// Whether another try may do better.
    pub passing: bool,
    /// Whether it may have had its effect all the same.
    pub uncertain: bool,
}

impl Failure {
    /// Another try would end the same way.
    pub fn lasting(error: impl Into<String>) -> Self {
        Self { error: error.into(), passing: false, uncertain: false }
    }

    /// Nothing was done, and that may change.
    pub fn passing(error: impl Into<String>) -> Self {
        Self { error: error.into(), passing: true, uncertain: false }
    }

    /// Nobody knows whether it was done, and it is not to be tried again.
    pub fn unknown(error: impl Into<String>) -> Self {
        Self { error: error.into(), passing: false, uncertain: true }
    }

    /// Nobody knows whether it was done.
    pub fn uncertain(error: impl Into<String>) -> Self {
        Self { error: error.into(), passing: true, uncertain: true }
    }
}

/// What is written about the step and the run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Move {
    pub outcome: Outcome,
    pub answer: Option<Value>,
    pub error: String,
    pub uncertain: bool,
    pub next: Next,
    /// An effect was had.
    pub acted: bool,
    /// The step failed, and the run goes on all the same.
    pub forgiven: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The step of this id, at once.
    Step(String),
    /// There is none: the run has come to its end.
    End,
    /// The same step again, or further, at that time; without a time when somebody decides.
    Later(Status, Option<DateTime<Utc>>),
    /// The run has failed.
    Fail,
}

/// How often a step is tried.
pub(crate) fn max_attempts(step: &Step) -> u32 {
    match step.kind() {
        Some(Kind::Call(_) | Kind::Http(_)) => {
            step.retry.as_ref().map_or(DEFAULT_ATTEMPTS, |retry| retry.max_attempts)
        }
        _ => 1,
    }
}

/// How long a try may take.
pub(crate) fn timeout(step: &Step) -> std::time::Duration {
    let timeout = step.timeout.as_deref().and_then(duration::parse).unwrap_or(TIMEOUT);
    timeout.to_std().unwrap_or(std::time::Duration::from_secs(10))
}

/// What follows a try, the `attempts`-th of the step.
pub(crate) fn after(
    ended: Ended,
    (graph, node): (&Graph<'_>, Node<'_>),
    attempts: u32,
    now: DateTime<Utc>,
) -> Move {
    let step = node.step;
    let to = |next: Option<&str>| next.map_or(Next::End, |id| Next::Step(id.to_owned()));
    let done = |outcome, next| Move {
        outcome,
        answer: None,
        error: String::new(),
        uncertain: false,
        next,
        acted: false,
        forgiven: false,
    };
    match ended {
        Ended::Done(answer) => Move {
            answer: Some(answer),
            acted: step.kind().is_some_and(Kind::is_action),
            ..done(Outcome::Done, to(graph.after(node)))
        },
        Ended::Branch(holds) => {
            Move { answer: Some(holds.into()), ..done(Outcome::Done, to(graph.branch(node, holds))) }
        }
        Ended::Wait(until) if until <= now => done(Outcome::Done, to(graph.after(node))),
        Ended::Wait(until) if until > now + LONGEST_WAIT => {
            let error = format!("{until} is more than five years away");
            failed(&Failure::lasting(error), (graph, node), attempts, now)
        }
        Ended::Wait(until) => done(Outcome::Waiting, Next::Later(Status::Waiting, Some(until))),
        Ended::Ask(limit) => done(Outcome::Pending, Next::Later(Status::PendingApproval, limit)),
        Ended::Expired => done(Outcome::Expired, to(graph.refused(node))),
        Ended::Failed(failure) => failed(&failure, (graph, node), attempts, now),
    }
}

fn failed(
    failure: &Failure,
    (graph, node): (&Graph<'_>, Node<'_>),
    attempts: u32,
    now: DateTime<Utc>,
) -> Move {
    let step = node.step;
    let again = failure.passing && attempts < max_attempts(step);
    let forgiven = !again && step.on_error == OnError::Continue;
    let (outcome, next) = if again {
        (Outcome::Retrying, Next::Later(Status::Retrying, Some(now + pause(step, attempts))))
    } else if forgiven {
        let next = graph.after(node).map_or(Next::End, |id| Next::Step(id.to_owned()));
        (Outcome::Failed, next)
    } else {
        (Outcome::Failed, Next::Fail)
    };
    let error = clean(&failure.error);
    Move { outcome, answer: None, error, uncertain: failure.uncertain, next, acted: false, forgiven }
}

fn pause(step: &Step, attempts: u32) -> TimeDelta {
    let retry = step.retry.as_ref();
    let span = |text: Option<&String>| text.and_then(|text| duration::parse(text));
    let first = span(retry.and_then(|retry| retry.first_wait.as_ref())).unwrap_or(FIRST_WAIT);
    let most = span(retry.and_then(|retry| retry.most_wait.as_ref())).unwrap_or(MOST_WAIT);
    backoff(attempts, first, most.max(first))
}

/// Text of others that can be stored: of bounded length, without NUL.
pub(crate) fn clean(text: &str) -> String {
    text.chars().filter(|character| *character != '\0').take(MAX_ERROR).collect()
}

/// How a run that has come to its end is called.
pub(crate) fn final_status(failed_steps: i32) -> Status {
    if failed_steps > 0 { Status::Partial } else { Status::Success }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::definition::Definition;
    use crate::flow::read::read;
    use serde_json::json;

    const FLOW: &str = "
name: A
trigger: manual
steps:
  - {id: plain, call: {method: x}}
  - {id: forgiving, call: {method: x}, on_error: continue, retry: {max_attempts: 2}}
  - {id: ask, approve: {title: '?', otherwise: [{id: sorry, wait: {for: 1d}}]}}
  - {id: last, wait: {for: 1d}}
";

    fn definition() -> Definition {
        read(FLOW, "", &mut proto::Faults::default()).unwrap()
    }

    fn moved(step: &str, ended: Ended, attempts: u32) -> Move {
        let definition = definition();
        let graph = Graph::of(&definition);
        after(ended, (&graph, graph.find(step).unwrap()), attempts, chassis_testing::moment())
    }

    #[test]
    fn what_may_pass_is_tried_again_until_the_attempts_are_used_up() {
        let now = chassis_testing::moment();
        for attempts in 1..5 {
            let moved = moved("plain", Ended::Failed(Failure::passing("away")), attempts);
            let Next::Later(Status::Retrying, Some(at)) = moved.next else { panic!("{moved:?}") };
            assert!(at > now && at <= now + MOST_WAIT && moved.outcome == Outcome::Retrying);
        }
        let last = moved("plain", Ended::Failed(Failure::passing("away")), 5);
        assert_eq!((last.outcome, last.next, last.error.as_str()), (Outcome::Failed, Next::Fail, "away"));
        let lasting = moved("plain", Ended::Failed(Failure::lasting("no")), 1);
        assert_eq!(lasting.next, Next::Fail);
    }

    #[test]
    fn a_failure_that_is_forgiven_goes_on() {
        let moved = moved("forgiving", Ended::Failed(Failure::passing("away")), 2);
        assert_eq!((moved.next, moved.forgiven), (Next::Step("ask".into()), true));
        assert_eq!(final_status(1), Status::Partial);
    }

    #[test]
    fn an_approval_that_does_not_come_in_time_is_its_own_outcome() {
        let expired = moved("ask", Ended::Expired, 1);
        assert_eq!((expired.outcome, expired.next), (Outcome::Expired, Next::Step("sorry".into())));
        let asked = moved("ask", Ended::Ask(None), 1);
        assert_eq!(asked.next, Next::Later(Status::PendingApproval, None));
    }

    #[test]
    fn a_wait_that_is_over_does_not_wait_and_an_endless_one_fails() {
        let now = chassis_testing::moment();
        assert_eq!(moved("last", Ended::Wait(now), 1).next, Next::End);
        let later = now + TimeDelta::days(1);
        assert_eq!(moved("last", Ended::Wait(later), 1).next, Next::Later(Status::Waiting, Some(later)));
        assert_eq!(moved("last", Ended::Wait(now + TimeDelta::days(3000)), 1).next, Next::Fail);
    }

    #[test]
    fn only_effects_count_as_actions() {
        assert!(moved("plain", Ended::Done(json!({})), 1).acted);
        assert!(!moved("last", Ended::Done(Value::Null), 1).acted);
    }

    #[test]
    fn an_error_can_be_stored_whatever_it_says() {
        let text = clean(&("a\0b".to_owned() + &"é".repeat(5000)));
        assert!(text.starts_with("ab") && text.chars().count() == MAX_ERROR);
    }
}
