//! Bounds on what a flow can do to the service that runs it.

use chassis_testing::eventually;
use serde_json::json;

use crate::support::{MAKE_CLIENT, World, outcomes};

#[tokio::test]
async fn a_template_that_would_take_all_memory_fails_its_run_and_no_other() {
    let world = World::working().await;
    world.apply(MAKE_CLIENT).await;
    for (number, text) in ["{{ [0]*1000000000000 }}", "{{ (data.name * 10**6) | replace('B', 'x' * 10**6) }}"]
        .into_iter()
        .enumerate()
    {
        let flow = format!(
            "{{name: Hungry {number}, trigger: {{custom: hungry{number}}}, steps: [
               {{id: eat, mail: {{to: a@example.com, subject: Hi, text: \"{text}\"}}}}]}}"
        );
        world.apply(&flow).await;
        let id = world.start(&format!("hungry{number}"), &json!({"name": "Bakery"})).await;
        let run = world.until(&id, "failed").await;
        assert!(run.error.contains("1024 KiB"), "{}", run.error);
        assert_eq!((run.attempts, outcomes(&run)), (1, vec![("eat", "failed")]));
    }
    let condition = "{name: Doubtful, trigger: {custom: doubtful}, steps: [
        {id: doubt, when: \"'x' * 10**9 == 'y'\", then: [{id: rest, wait: {for: 1d}}]}]}";
    world.apply(condition).await;
    let id = world.start("doubtful", &json!({})).await;
    assert!(world.until(&id, "failed").await.error.contains("1024 KiB"));
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    world.until(&id, "success").await;
}

#[tokio::test]
async fn a_write_that_fails_again_and_again_is_not_blamed_on_the_rendering_before_it() {
    let world = World::idle().await;
    world.apply(MAKE_CLIENT).await;
    // The database refuses three times that a step begins. What a sequence counts stays counted.
    world.execute("create sequence public.tries").await;
    let refuse = "create function public.refuse() returns trigger language plpgsql as $$ begin
        if nextval('public.tries') <= 3 then raise exception 'not now'; end if; return new; end $$";
    world.execute(refuse).await;
    let trigger = "create trigger refuse before insert on automation.run_step \
                   for each row execute function public.refuse()";
    world.execute(trigger).await;
    let id = world.start("make.client", &json!({"name": "Bakery"})).await;
    let _working = world.another().await;
    eventually("the run has come to its end", async || {
        // What has failed is tried again after a while.
        world.clock.advance(chrono::TimeDelta::minutes(1));
        world.count("select count(*) from automation.run where finished_at is not null").await == 1
    })
    .await;
    assert_eq!(world.run(&id).await.status, "success");
    assert!(world.count("select last_value from public.tries").await > 3, "it was refused");
    assert_eq!(world.clients().await, 1);
}

#[tokio::test]
async fn a_run_that_ended_its_process_twice_is_failed_and_can_be_restarted() {
    let world = World::idle().await;
    world.apply(MAKE_CLIENT).await;
    let once = world.start("make.client", &json!({"name": "Once"})).await;
    world.execute("update automation.run set renders = 1").await;
    let twice = world.start("make.client", &json!({"name": "Twice"})).await;
    world.execute("update automation.run set renders = 2 where renders = 0").await;
    let _working = world.another().await;
    world.until(&once, "success").await;
    let run = world.until(&twice, "failed").await;
    assert!(run.error.contains("ended twice"), "{}", run.error);
    assert_eq!(world.count("select count(*) from automation.run where renders <> 0").await, 0);
    let again = proto::automation::RestartRunRequest {
        id: twice.clone(),
        from: proto::automation::RestartFrom::FailedStep.into(),
    };
    world.runs().restart_run(world.caller.request(again)).await.unwrap();
    world.until(&twice, "success").await;
    assert_eq!(world.clients().await, 2);
}

#[tokio::test]
async fn every_rendering_is_counted_before_it_begins() {
    let world = World::idle().await;
    world
        .apply(
            "{name: Twice, trigger: {custom: twice}, steps: [
               {id: one, call: {method: admin.relations.v1.ClientService/CreateClient, with: {client: {company_name: One}}}},
               {id: two, call: {method: admin.relations.v1.ClientService/CreateClient, with: {client: {company_name: Two}}}}]}",
        )
        .await;
    // Keeps every change of the count. A step that was rendered has begun, which sets it back.
    let keep = "create table automation.counted (position bigserial, renders integer);
        comment on table automation.counted is 'unaudited: what a test looks at';
        create function automation.keep() returns trigger language plpgsql security definer as
            $$ begin insert into automation.counted (renders) values (new.renders); return null; end $$;
        create trigger keep after update of renders on automation.run for each row
            when (new.renders is distinct from old.renders) execute function automation.keep()";
    sqlx::raw_sql(keep).execute(&mut world.database.connect().await).await.unwrap();
    let id = world.start("twice", &json!({})).await;
    let _working = world.another().await;
    world.until(&id, "success").await;
    let counted: Vec<i32> = sqlx::query_scalar("select renders from automation.counted order by position")
        .fetch_all(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(counted, [1, 0, 1, 0], "the first when it is taken up, the second as the first ends");
}
