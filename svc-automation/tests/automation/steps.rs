//! Steps other than calls: requests, mails, waits, branches; and cancelling in the middle of them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chassis_testing::eventually;
use chrono::TimeDelta;
use hmac::{Hmac, KeyInit, Mac};
use proto::automation::{GetSigningSecretRequest, RotateSigningSecretRequest};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::{Got, Receiver, World, outcomes, problem};

/// Whether one of the signatures is right, as a receiver finds out.
pub(crate) fn is_signed(got: &Got, secret: &str) -> bool {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    let (id, time) = (got.header("webhook-id"), got.header("webhook-timestamp"));
    mac.update(format!("{id}.{time}.{}", got.body).as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    got.header("webhook-signature").split(' ').any(|signature| signature == expected)
}

fn post(receiver: &Receiver) -> String {
    format!(
        "
name: Tell
trigger: {{custom: tell}}
steps:
  - id: tell
    http: {{url: '{}/hook', headers: {{x-kind: '{{{{ data.kind }}}}'}}, body: {{number: '{{{{ data.number }}}}'}}}}
  - id: check
    when: steps.tell.answer.body.seen
    then: [{{id: pause, wait: {{for: 1h}}}}]
",
        receiver.url
    )
}

#[tokio::test]
async fn a_request_is_signed_and_its_answer_can_be_used() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    world.apply(&post(&receiver)).await;
    let id = world.start("tell", &json!({"kind": "a", "number": 7})).await;
    let run = world.until(&id, "waiting").await;
    assert_eq!(outcomes(&run), [("tell", "done"), ("check", "done"), ("pause", "waiting")]);
    let got = receiver.got();
    assert_eq!((got.len(), got[0].path.as_str(), got[0].header("x-kind")), (1, "/hook", "a"));
    assert_eq!(serde_json::from_str::<Value>(&got[0].body).unwrap(), json!({"number": 7}));
    assert_eq!(got[0].header("webhook-id"), format!("{id}:tell"));
    let secret = world.webhooks().get_signing_secret(world.caller.request(GetSigningSecretRequest {})).await;
    let secret = secret.unwrap().into_inner().secret;
    assert!(is_signed(&got[0], &secret));
    let rotated =
        world.webhooks().rotate_signing_secret(world.caller.request(RotateSigningSecretRequest {})).await;
    let new = rotated.unwrap().into_inner().secret;
    world.fire("tell", &json!({"kind": "b", "number": 8})).await;
    receiver.until_got(2).await;
    let got = receiver.got();
    assert!(new != secret && is_signed(&got[1], &secret) && is_signed(&got[1], &new), "both sign for a day");
}

#[tokio::test]
async fn a_request_is_repeated_with_the_same_content_until_it_is_taken() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    receiver.answer(&[503, 429]);
    world.apply(&post(&receiver)).await;
    let id = world.start("tell", &json!({"kind": "a", "number": 7})).await;
    for attempts in 1..3 {
        receiver.until_got(attempts).await;
        world.until(&id, "retrying").await;
        world.clock.advance(TimeDelta::minutes(1));
    }
    world.until(&id, "waiting").await;
    let got = receiver.got();
    assert_eq!(got.len(), 3);
    for again in &got[1..] {
        assert_eq!((again.header("webhook-id"), &again.body), (got[0].header("webhook-id"), &got[0].body));
    }
}

#[tokio::test]
async fn a_request_that_is_refused_or_leads_elsewhere_fails() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    world.apply(&post(&receiver)).await;
    for status in [404, 302] {
        receiver.answer(&[status]);
        let id = world.start("tell", &json!({"kind": "a", "number": 7})).await;
        let run = world.until(&id, "failed").await;
        assert!(run.error.contains(&status.to_string()), "{}", run.error);
    }
    assert_eq!(receiver.got().len(), 2, "no redirect is followed");
}

#[tokio::test]
async fn a_mail_is_queued_once() {
    let world = World::working().await;
    world.provision().await;
    world.apply("
name: Welcome
trigger: {custom: welcome}
steps:
  - {id: mail, mail: {to: '{{ data.email }}', subject: 'Hello {{ data.name }}', text: 'From {{ account.name }}'}}
").await;
    let id = world.start("welcome", &json!({"email": "sanne@example.com", "name": "Sanne"})).await;
    let run = world.until(&id, "success").await;
    assert_eq!((run.actions_done, outcomes(&run)), (1, vec![("mail", "done")]));
    let mails = "select count(*) from automation.mail where recipients = '{sanne@example.com}'
                 and position('Auto-Submitted'::bytea in content) > 0 and position('auto-generated'::bytea in content) > 0";
    assert_eq!(world.count(mails).await, 1);
    let id = world.start("welcome", &json!({"email": "", "name": "Sanne"})).await;
    assert!(world.until(&id, "failed").await.error.starts_with("to: "));
}

#[tokio::test]
async fn a_wait_holds_nothing_and_ends_at_its_time() {
    let world = World::working().await;
    world
        .apply(
            "
name: Wait
trigger: {custom: go}
steps:
  - {id: due, wait: {until: '{{ data.due_date }}', at: '17:00'}}
  - {id: past, wait: {until: '2020-01-01'}}
",
        )
        .await;
    let id = world.start("go", &json!({"due_date": "2026-11-20"})).await;
    let run = world.until(&id, "waiting").await;
    let until = chassis_base::time::from_timestamp(&run.next_attempt_at.unwrap()).unwrap();
    assert_eq!(until.to_rfc3339(), "2026-11-20T16:00:00+00:00");
    assert_eq!(world.count("select count(*) from automation.run where next_at <= created_at").await, 0);
    world.clock.advance(TimeDelta::days(6));
    let run = world.until(&id, "success").await;
    assert_eq!(outcomes(&run), [("due", "done"), ("past", "done")]);
    assert_eq!(run.actions_done, 0);
}

#[tokio::test]
async fn a_waiting_run_can_be_cancelled_and_cancelling_is_idempotent() {
    let world = World::working().await;
    world.apply("{name: W, trigger: {custom: go}, steps: [{id: a, wait: {for: 1d}}]}").await;
    let id = world.start("go", &json!({})).await;
    world.until(&id, "waiting").await;
    for _ in 0..2 {
        assert_eq!(world.cancel(&id).await.unwrap(), "cancelled");
    }
    world.clock.advance(TimeDelta::days(2));
    let other = world.start("go", &json!({})).await;
    world.until(&other, "waiting").await;
    assert_eq!(world.run(&id).await.status, "cancelled");
}

#[tokio::test]
async fn a_finished_run_cannot_be_cancelled() {
    let world = World::working().await;
    world.apply("{name: W, trigger: {custom: go}, steps: [{id: a, wait: {until: '2020-01-01'}}]}").await;
    let id = world.start("go", &json!({})).await;
    world.until(&id, "success").await;
    assert_eq!(problem(&world.cancel(&id).await.unwrap_err()), "run_finished");
    assert_eq!(world.cancel(&crate::support::nobody()).await.unwrap_err().code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn a_step_in_progress_is_finished_and_none_is_started_after_a_cancel() {
    let (world, receiver) = (World::working().await, Receiver::start().await);
    receiver.close();
    world.apply(&post(&receiver)).await;
    let id = world.start("tell", &json!({"kind": "a", "number": 7})).await;
    receiver.until_got(1).await;
    assert_eq!(world.cancel(&id).await.unwrap(), "cancelled");
    receiver.open();
    eventually("the step is recorded", async || outcomes(&world.run(&id).await) == [("tell", "done")]).await;
    let run = world.run(&id).await;
    assert_eq!((run.status.as_str(), run.actions_done), ("cancelled", 1));
}

#[tokio::test]
async fn one_request_that_hangs_does_not_delay_the_others() {
    let (world, slow, quick) = (World::working().await, Receiver::start().await, Receiver::start().await);
    slow.close();
    world
        .apply(&post(&slow).replace("name: Tell", "name: Slow").replace("custom: tell", "custom: slow"))
        .await;
    world.apply(&post(&quick)).await;
    let hanging = world.start("slow", &json!({"kind": "a", "number": 1})).await;
    slow.until_got(1).await;
    let id = world.start("tell", &json!({"kind": "a", "number": 2})).await;
    world.until(&id, "waiting").await;
    assert_eq!(world.run(&hanging).await.status, "running");
    slow.open();
    world.until(&hanging, "waiting").await;
}
