//! Concurrent requests: numbers without duplicates, unique external ids, exact totals.

use std::collections::BTreeSet;

use proto::relations::{ClientInput, CreateClientRequest, RelationType};
use tonic::Status;

use crate::support::{Caller, World, company, problem};

/// Runs the tasks concurrently and waits for all of them.
async fn all<T: Send + 'static>(
    tasks: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let running: Vec<_> = tasks.map(tokio::spawn).collect();
    let mut results = Vec::new();
    for task in running {
        results.push(task.await.unwrap());
    }
    results
}

async fn create(caller: Caller, input: ClientInput) -> Result<String, Status> {
    caller.create(input).await.map(|client| client.debtor_number)
}

#[tokio::test]
async fn concurrent_creates_get_numbers_without_duplicates() {
    let world = World::new().await;
    let caller = world.caller();
    caller.create(ClientInput { external_id: "taken".into(), ..company("first") }).await.unwrap();
    // Every third one fails: by its content, or by its external id, which is found out while the number is held.
    let inputs = (0..75).map(|index| match index % 6 {
        0 => ClientInput { email: "no".into(), ..company("bad") },
        3 => ClientInput { external_id: "taken".into(), ..company("late") },
        _ => company("good"),
    });
    let outcomes = all(inputs.map(|input| create(caller.clone(), input))).await;
    let numbers: BTreeSet<String> = outcomes.iter().flatten().cloned().collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 50);
    assert_eq!(numbers.len(), 50);
    // One that failed may have used up a number.
    let possible: BTreeSet<String> = (2..=76).map(|number| format!("D-{number:05}")).collect();
    assert!(numbers.is_subset(&possible), "{numbers:?}");
    assert_eq!((caller.total("").await, caller.total("company").await), (51, 51));
}

#[tokio::test]
async fn one_of_many_gets_an_external_id_and_the_others_are_told_the_holder() {
    let world = World::new().await;
    let caller = world.caller();
    let tasks = (0..20).map(|_| {
        let caller = caller.clone();
        async move { caller.create(ClientInput { external_id: "x".into(), ..company("A") }).await }
    });
    let outcomes = all(tasks).await;
    let winners: Vec<_> = outcomes.iter().flatten().collect();
    assert_eq!(winners.len(), 1);
    for status in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert_eq!(problem(status), ("external_id_taken".into(), vec![("id".into(), winners[0].id.clone())]));
    }
}

#[tokio::test]
async fn concurrent_requests_with_one_key_create_one_client() {
    let world = World::new().await;
    let caller = world.caller();
    let tasks = (0..30).map(|_| {
        let caller = caller.clone();
        async move {
            let request = caller.token.keyed("k", CreateClientRequest { client: Some(company("A")) });
            caller.clients().create_client(request).await.unwrap().into_inner()
        }
    });
    let answers = all(tasks).await;
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(caller.total("").await, 1);
}

#[tokio::test]
async fn totals_stay_exact_under_concurrent_creates_and_type_changes() {
    let world = World::new().await;
    let caller = world.caller();
    let tasks = (0..30).map(|index| {
        let caller = caller.clone();
        async move {
            let id = caller.create(ClientInput { lastname: "L".into(), ..company("C") }).await.unwrap().id;
            let of = |kind: RelationType| ClientInput { r#type: kind.into(), ..ClientInput::default() };
            for kind in
                [RelationType::Private, RelationType::Company, RelationType::Private].iter().take(index % 4)
            {
                caller.update(&id, of(*kind), &["type"]).await.unwrap();
            }
        }
    });
    all(tasks).await;
    // 30 records change 0, 1, 2 or 3 times: 8, 8, 7 and 7 of them; an odd count ends as private.
    assert_eq!(
        (caller.total("").await, caller.total("company").await, caller.total("private").await),
        (30, 15, 15)
    );
    let rows: i64 = sqlx::query_scalar("select count(*) from relations.relation where type = 'private'")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(rows, 15);
}

#[tokio::test]
async fn concurrent_changes_of_one_client_all_count() {
    let world = World::new().await;
    let caller = world.caller();
    let id = caller.create(company("A")).await.unwrap().id;
    let fields = [
        "firstname",
        "lastname",
        "phone",
        "address",
        "zipcode",
        "city",
        "bank_account_name",
        "mail_salutation",
    ];
    let tasks = fields.into_iter().map(|field| {
        let (caller, id) = (caller.clone(), id.clone());
        async move {
            let value = || "new".to_owned();
            let input = ClientInput {
                firstname: value(),
                lastname: value(),
                phone: value(),
                address: value(),
                zipcode: value(),
                city: value(),
                bank_account_name: value(),
                mail_salutation: value(),
                ..ClientInput::default()
            };
            caller.update(&id, input, &[field]).await.unwrap();
        }
    });
    all(tasks).await;
    let client = caller.get(&id).await.unwrap();
    for value in
        [client.firstname, client.lastname, client.phone, client.address, client.zipcode, client.city]
    {
        assert_eq!(value, "new");
    }
    let version: i64 = sqlx::query_scalar("select version from relations.relation")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(version, 9, "no change was lost");
}
