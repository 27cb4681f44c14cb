//! What follows an attempt of a step, and how a run moves on. Pure, but for the random part of a backoff and the counter of
//! runs that have ended.

use chassis_work::worker::backoff;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use super::{Outcome, Record, Status};
use crate::definition::Kind;
use crate::definition::graph::{Graph, Node};
use crate::definition::model::{DEFAULT_ATTEMPTS, OnError, Retry, Step};
use crate::{duration, text};

const INITIAL_BACKOFF: TimeDelta = TimeDelta::seconds(2);
const MAX_BACKOFF: TimeDelta = TimeDelta::minutes(10);
const TIMEOUT: TimeDelta = TimeDelta::seconds(10);
/// The longest wait. It bounds `until`, whose date comes from data and may be any.
const MAX_WAIT: TimeDelta = TimeDelta::days(5 * 366);
/// Services remember idempotency keys for a day. After that a repeated call could have its effect a second time, so a call
/// whose effect is uncertain is not repeated.
pub(super) const IDEMPOTENCY_WINDOW: TimeDelta = TimeDelta::hours(23);

/// A step in its graph.
#[derive(Clone, Copy)]
pub(super) struct StepRef<'d> {
    pub graph: &'d Graph<'d>,
    pub node: Node<'d>,
    pub kind: Kind<'d>,
}

impl<'d> StepRef<'d> {
    pub(super) fn definition(self) -> &'d Step {
        self.node.step
    }
}

/// How an attempt of a step ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StepResult {
    Done(Value),
    Branch(bool),
    /// The run waits until then.
    Wait(DateTime<Utc>),
    /// The run waits for a decision, until then if there is a limit.
    WaitForApproval(Option<DateTime<Utc>>),
    /// Nobody has decided in time.
    Expired,
    Failed(Failure),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub error: String,
    /// Whether another attempt may succeed.
    pub is_transient: bool,
    /// Whether the attempt may have had its effect although it failed.
    pub is_uncertain: bool,
}

impl Failure {
    /// There was no effect, and another attempt would fail the same way.
    pub(super) fn permanent(error: impl Into<String>) -> Self {
        Self { error: error.into(), is_transient: false, is_uncertain: false }
    }

    /// There was no effect, and another attempt may succeed.
    pub(super) fn transient(error: impl Into<String>) -> Self {
        Self { error: error.into(), is_transient: true, is_uncertain: false }
    }

    /// There may have been an effect, and another attempt may succeed.
    pub(super) fn uncertain(error: impl Into<String>) -> Self {
        Self { error: error.into(), is_transient: true, is_uncertain: true }
    }

    /// There may have been an effect, and there must not be another attempt.
    pub(super) fn uncertain_permanent(error: impl Into<String>) -> Self {
        Self { error: error.into(), is_transient: false, is_uncertain: true }
    }
}

/// What is written about the step and the run after an attempt.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Transition {
    pub outcome: Outcome,
    pub answer: Option<Value>,
    pub error: String,
    pub is_uncertain: bool,
    pub next: Next,
    /// The step has changed something elsewhere.
    pub had_effect: bool,
    /// The step has failed, and its definition lets the run continue.
    pub is_ignored_failure: bool,
}

/// What the run does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Takes the step of this id, without a pause.
    Step(String),
    /// Ends: there is no further step.
    End,
    /// Continues at that time, or when somebody decides.
    Later(Status, Option<DateTime<Utc>>),
    Fail,
}

/// How often a step is attempted.
pub(super) fn max_attempts(step: &Step) -> u32 {
    match step.kind() {
        Some(Kind::Call(_) | Kind::Http(_)) => {
            step.retry.as_ref().map_or(DEFAULT_ATTEMPTS, |retry| retry.max_attempts)
        }
        _ => 1,
    }
}

/// How long an attempt may take.
pub(super) fn timeout(step: &Step) -> std::time::Duration {
    let timeout = step.timeout.as_deref().and_then(duration::parse).unwrap_or(TIMEOUT);
    timeout.to_std().unwrap_or(std::time::Duration::from_secs(10))
}

/// What follows an attempt, the `attempts`-th of the step.
pub(super) fn transition(
    result: StepResult,
    step: StepRef<'_>,
    attempts: u32,
    now: DateTime<Utc>,
) -> Transition {
    let StepRef { graph, node, kind } = step;
    let step_or_end = |next: Option<&str>| next.map_or(Next::End, |id| Next::Step(id.to_owned()));
    let plain = |outcome, next| Transition {
        outcome,
        answer: None,
        error: String::new(),
        is_uncertain: false,
        next,
        had_effect: false,
        is_ignored_failure: false,
    };
    match result {
        StepResult::Done(answer) => Transition {
            answer: Some(answer),
            had_effect: kind.is_action(),
            ..plain(Outcome::Done, step_or_end(graph.after(node)))
        },
        StepResult::Branch(holds) => Transition {
            answer: Some(holds.into()),
            ..plain(Outcome::Done, step_or_end(graph.branch(node, holds)))
        },
        StepResult::Wait(until) if until <= now => plain(Outcome::Done, step_or_end(graph.after(node))),
        StepResult::Wait(until) if until > now + MAX_WAIT => {
            let error = format!("{until} is more than five years away");
            failed(&Failure::permanent(error), step, attempts, now)
        }
        StepResult::Wait(until) => plain(Outcome::Waiting, Next::Later(Status::Waiting, Some(until))),
        StepResult::WaitForApproval(limit) => {
            plain(Outcome::Pending, Next::Later(Status::PendingApproval, limit))
        }
        StepResult::Expired => plain(Outcome::Expired, step_or_end(graph.rejected(node))),
        StepResult::Failed(failure) => failed(&failure, step, attempts, now),
    }
}

fn failed(failure: &Failure, step: StepRef<'_>, attempts: u32, now: DateTime<Utc>) -> Transition {
    let definition = step.definition();
    let is_retried = failure.is_transient && attempts < max_attempts(definition);
    let is_ignored_failure = !is_retried && definition.on_error == OnError::Continue;
    let (outcome, next) = if is_retried {
        let at = now + retry_delay(definition, attempts);
        (Outcome::Retrying, Next::Later(Status::Retrying, Some(at)))
    } else if is_ignored_failure {
        let next = step.graph.after(step.node).map_or(Next::End, |id| Next::Step(id.to_owned()));
        (Outcome::Failed, next)
    } else {
        (Outcome::Failed, Next::Fail)
    };
    Transition {
        outcome,
        answer: None,
        error: text::storable(&failure.error),
        is_uncertain: failure.is_uncertain,
        next,
        had_effect: false,
        is_ignored_failure,
    }
}

fn retry_delay(step: &Step, attempts: u32) -> TimeDelta {
    let retry = step.retry.as_ref();
    let initial = retry.and_then(Retry::initial_backoff).and_then(duration::parse);
    let initial = initial.unwrap_or(INITIAL_BACKOFF);
    let max = retry.and_then(Retry::max_backoff).and_then(duration::parse).unwrap_or(MAX_BACKOFF);
    backoff(attempts, initial, max.max(initial))
}

/// The status of a run that has taken its last step.
pub(super) fn final_status(failed_steps: i32) -> Status {
    if failed_steps > 0 { Status::Partial } else { Status::Success }
}

impl Record {
    /// Makes a step the next one, due now.
    pub(super) fn go_to(&mut self, step: &str, now: DateTime<Utc>) {
        self.status = Status::Running;
        step.clone_into(&mut self.step);
        self.renders = 0;
        self.next_at = Some(now);
    }

    /// Ends the run. `step` stays: it shows where the run ended, and a restart continues from it.
    pub(super) fn finish(&mut self, status: Status, now: DateTime<Utc>) {
        self.status = status;
        self.next_at = None;
        self.finished_at = Some(now);
        metrics::counter!("runs_finished_total", "status" => status.name()).increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::Definition;
    use crate::definition::read::read;
    use serde_json::json;

    const FLOW: &str = "
name: A
trigger: manual
steps:
  - {id: plain, call: {method: x}}
  - {id: lenient, call: {method: x}, on_error: continue, retry: {max_attempts: 2}}
  - {id: ask, approve: {title: '?', otherwise: [{id: sorry, wait: {for: 1d}}]}}
  - {id: last, wait: {for: 1d}}
";

    fn definition() -> Definition {
        read(FLOW, "", &mut proto::Faults::default()).unwrap()
    }

    fn after(step: &str, result: StepResult, attempts: u32) -> Transition {
        let definition = definition();
        let graph = Graph::of(&definition);
        let node = graph.find(step).unwrap();
        let step = StepRef { graph: &graph, node, kind: node.step.kind().unwrap() };
        transition(result, step, attempts, chassis_testing::moment())
    }

    #[test]
    fn a_transient_failure_is_retried_until_the_attempts_are_used_up() {
        let now = chassis_testing::moment();
        for attempts in 1..5 {
            let next = after("plain", StepResult::Failed(Failure::transient("away")), attempts);
            let Next::Later(Status::Retrying, Some(at)) = next.next else { panic!("{next:?}") };
            assert!(at > now && at <= now + MAX_BACKOFF && next.outcome == Outcome::Retrying);
        }
        let last = after("plain", StepResult::Failed(Failure::transient("away")), 5);
        assert_eq!((last.outcome, last.next, last.error.as_str()), (Outcome::Failed, Next::Fail, "away"));
        let permanent = after("plain", StepResult::Failed(Failure::permanent("no")), 1);
        assert_eq!(permanent.next, Next::Fail);
    }

    #[test]
    fn a_run_continues_after_a_failure_that_its_step_ignores() {
        let next = after("lenient", StepResult::Failed(Failure::transient("away")), 2);
        assert_eq!((next.next, next.is_ignored_failure), (Next::Step("ask".into()), true));
        assert_eq!(final_status(1), Status::Partial);
    }

    #[test]
    fn an_approval_that_does_not_come_in_time_is_its_own_outcome() {
        let expired = after("ask", StepResult::Expired, 1);
        assert_eq!((expired.outcome, expired.next), (Outcome::Expired, Next::Step("sorry".into())));
        let asked = after("ask", StepResult::WaitForApproval(None), 1);
        assert_eq!(asked.next, Next::Later(Status::PendingApproval, None));
    }

    #[test]
    fn a_wait_that_is_over_does_not_wait_and_an_endless_one_fails() {
        let now = chassis_testing::moment();
        assert_eq!(after("last", StepResult::Wait(now), 1).next, Next::End);
        let later = now + TimeDelta::days(1);
        assert_eq!(after("last", StepResult::Wait(later), 1).next, Next::Later(Status::Waiting, Some(later)));
        assert_eq!(after("last", StepResult::Wait(now + TimeDelta::days(3000)), 1).next, Next::Fail);
    }

    #[test]
    fn only_effects_count_as_actions() {
        assert!(after("plain", StepResult::Done(json!({})), 1).had_effect);
        assert!(!after("last", StepResult::Done(Value::Null), 1).had_effect);
    }

    #[test]
    fn the_delay_grows_from_the_initial_backoff_to_the_longest_under_old_and_new_names() {
        for retry in ["initial_backoff: 10s, max_backoff: 40s", "first_wait: 10s, most_wait: 40s"] {
            let text = format!(
                "{{name: A, trigger: manual, steps: [{{id: a, call: {{method: x}}, retry: {{{retry}}}}}]}}"
            );
            let definition = read(&text, "", &mut proto::Faults::default()).unwrap();
            for (attempts, full) in [(1, 10_000), (2, 20_000), (3, 40_000), (9, 40_000)] {
                let delay = retry_delay(&definition.steps[0], attempts).num_milliseconds();
                assert!((full / 2..=full).contains(&delay), "{retry}, attempt {attempts}: {delay} ms");
            }
        }
    }
}
