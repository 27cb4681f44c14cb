//! Steps that wait for a person.

use chrono::TimeDelta;
use proto::automation::{ApproveRunRequest, Decision, RejectRunRequest, Run};
use serde_json::json;
use tonic::Status;

use crate::support::{World, outcomes, problem};

const FLOW: &str = "
name: Ask
trigger: {custom: ask}
steps:
  - id: boss
    approve:
      title: 'Write off {{ data.amount }}?'
      within: 3d
      otherwise:
        - id: late
          when: steps.boss.outcome == 'expired'
          then: [{id: nobody, wait: {until: '2020-01-01'}}]
          else: [{id: refused, wait: {until: '2020-01-01'}}]
  - {id: yes, wait: {until: '2020-01-01'}}
";

fn decision(step: &str) -> Decision {
    Decision { who: "Sanne".into(), why: "Fair".into(), step: step.into() }
}

impl World {
    async fn approve(&self, id: &str, step: &str) -> Result<Run, Status> {
        let request = ApproveRunRequest { id: id.to_owned(), decision: Some(decision(step)) };
        Ok(self.runs().approve_run(self.caller.request(request)).await?.into_inner().data.unwrap())
    }

    async fn reject(&self, id: &str) -> Result<Run, Status> {
        let request = RejectRunRequest { id: id.to_owned(), decision: Some(decision("")) };
        Ok(self.runs().reject_run(self.caller.request(request)).await?.into_inner().data.unwrap())
    }
}

#[tokio::test]
async fn an_approved_run_continues_and_shows_who_decided_and_why() {
    let world = World::working().await;
    world.apply(FLOW).await;
    let id = world.start("ask", &json!({"amount": 100})).await;
    world.until(&id, "pending_approval").await;
    assert_eq!(problem(&world.approve(&id, "another").await.unwrap_err()), "run_state");
    world.approve(&id, "boss").await.unwrap();
    let run = world.until(&id, "success").await;
    assert_eq!(outcomes(&run), [("boss", "approved"), ("yes", "done")]);
    let steps = &run.meta.as_ref().unwrap().steps;
    assert_eq!((steps[0].decided_by.as_str(), steps[0].reason.as_str()), ("Sanne", "Fair"));
    assert_eq!(problem(&world.approve(&id, "").await.unwrap_err()), "run_state");
}

#[tokio::test]
async fn a_rejected_run_never_reaches_what_needed_the_approval() {
    let world = World::working().await;
    world.apply(FLOW).await;
    let id = world.start("ask", &json!({"amount": 100})).await;
    world.until(&id, "pending_approval").await;
    world.reject(&id).await.unwrap();
    let run = world.until(&id, "success").await;
    assert_eq!(outcomes(&run), [("boss", "rejected"), ("late", "done"), ("refused", "done")]);
}

#[tokio::test]
async fn an_approval_that_nobody_gives_in_time_expires() {
    let world = World::working().await;
    world.apply(FLOW).await;
    let id = world.start("ask", &json!({"amount": 100})).await;
    world.until(&id, "pending_approval").await;
    world.clock.advance(TimeDelta::days(3));
    let run = world.until(&id, "success").await;
    assert_eq!(outcomes(&run), [("boss", "expired"), ("late", "done"), ("nobody", "done")]);
}

#[tokio::test]
async fn only_one_of_many_decisions_counts() {
    let world = World::working().await;
    world.apply(FLOW).await;
    let id = world.start("ask", &json!({"amount": 100})).await;
    world.until(&id, "pending_approval").await;
    let (approved, rejected) = tokio::join!(world.approve(&id, ""), world.reject(&id));
    assert_ne!(approved.is_ok(), rejected.is_ok());
    world.until(&id, "success").await;
}
