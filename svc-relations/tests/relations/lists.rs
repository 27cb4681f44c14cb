//! Lists of clients: pages, filters, search.

use chassis_testing::{expected_faults, faults};
use proto::relations::{ClientInput, ListClientsRequest};

use crate::support::{Caller, World, company, person};

fn page(page: i64, per_page: i64) -> ListClientsRequest {
    ListClientsRequest { page: Some(page), per_page: Some(per_page), ..ListClientsRequest::default() }
}

fn search(term: &str) -> ListClientsRequest {
    ListClientsRequest { search: term.to_owned(), ..ListClientsRequest::default() }
}

/// The debtor numbers of what is found, newest first, and the total.
async fn found(caller: &Caller, request: ListClientsRequest) -> (Vec<String>, i64) {
    let answer = caller.list(request).await;
    let numbers = answer.data.into_iter().map(|client| client.debtor_number).collect();
    (numbers, answer.meta.unwrap().total)
}

#[tokio::test]
async fn pages_of_one_moment_together_are_the_list_without_repeats() {
    let world = World::new().await;
    let caller = world.caller();
    let mut created = Vec::new();
    for index in 0..23 {
        let input = if index % 2 == 0 { company("x") } else { person("x") };
        created.push(caller.create(input).await.unwrap().id);
    }
    created.reverse();
    for filter in [ListClientsRequest::default(), search("x")] {
        let mut listed = Vec::new();
        for number in 1..=4 {
            let request = ListClientsRequest { page: Some(number), per_page: Some(7), ..filter.clone() };
            let answer = caller.list(request).await;
            let meta = answer.meta.unwrap();
            assert_eq!((meta.page, meta.per_page, meta.total, meta.pages), (number, 7, 23, 4));
            listed.extend(answer.data.into_iter().map(|client| client.id));
        }
        assert_eq!(listed, created);
    }
    let answer = caller.list(page(5, 7)).await;
    assert_eq!((answer.data.len(), answer.meta.unwrap().total), (0, 23), "past the end");
}

#[tokio::test]
async fn a_list_is_newest_first_and_can_show_one_type() {
    let world = World::new().await;
    let caller = world.caller();
    for input in [company("A"), person("B"), company("C")] {
        caller.create(input).await.unwrap();
        world.clock.advance(chrono::TimeDelta::days(1));
    }
    let of = |contact_type: &str| ListClientsRequest { contact_type: contact_type.into(), ..search("") };
    let numbers = |names: &[&str]| names.iter().map(|n| format!("D-0000{n}")).collect::<Vec<_>>();
    assert_eq!(found(&caller, of("")).await, (numbers(&["3", "2", "1"]), 3));
    assert_eq!(found(&caller, of("company")).await, (numbers(&["3", "1"]), 2));
    assert_eq!(found(&caller, of("private")).await, (numbers(&["2"]), 1));
    assert_eq!(found(&caller, of("government")).await.1, 3, "other values are ignored");
    let both = ListClientsRequest { contact_type: "company".into(), ..search("d-0000") };
    assert_eq!(found(&caller, both).await, (numbers(&["3", "1"]), 2));
}

#[tokio::test]
async fn a_search_finds_substrings_of_names_email_city_and_number_whatever_their_case() {
    let world = World::new().await;
    let caller = world.caller();
    let input = ClientInput {
        company_name: "Bakkerij ÉCLAIR 100%".into(),
        firstname: "Sanne".into(),
        lastname: "de Vries".into(),
        email: "Info@Korenbloem.example".into(),
        city: "Den_Haag".into(),
        phone: "0612345678".into(),
        ..ClientInput::default()
    };
    caller.create(input).await.unwrap();
    caller.create(company("Ander")).await.unwrap();
    for term in
        ["éclair", "SANNE DE V", "info@korenbloem", "den_haag", "d-00001", " bakkerij ", "100%", "n_h", "é"]
    {
        assert_eq!(found(&caller, search(term)).await, (vec!["D-00001".to_owned()], 1), "{term}");
    }
    for term in ["b%j", "n__h", "\\", "0612345678", "haag d", "%%"] {
        assert_eq!(found(&caller, search(term)).await, (vec![], 0), "{term}");
    }
    for blank in ["", "   "] {
        assert_eq!(found(&caller, search(blank)).await.1, 2, "{blank:?}");
    }
}

#[tokio::test]
async fn a_search_follows_changes() {
    let world = World::new().await;
    let caller = world.caller();
    let id = caller.create(company("Oud")).await.unwrap().id;
    caller.update(&id, company("Nieuw"), &["company_name"]).await.unwrap();
    assert_eq!(found(&caller, search("oud")).await.1, 0);
    assert_eq!(found(&caller, search("nieuw")).await.1, 1);
    assert_eq!(found(&caller, search("d-00001")).await.1, 1, "the number stays");
}

#[tokio::test]
async fn a_page_below_one_and_a_search_that_is_not_text_are_refused() {
    let world = World::new().await;
    let caller = world.caller();
    for (request, position, code) in [
        (page(0, 25), "/page", "out_of_range"),
        (page(1, 0), "/per_page", "out_of_range"),
        (search("a\0"), "/search", "bad_text"),
        (search(&"x".repeat(256)), "/search", "too_long"),
    ] {
        let status = caller.clients().list_clients(caller.request(request)).await.unwrap_err();
        assert_eq!(faults(&status), expected_faults(&[(position, code)]));
    }
    assert_eq!(caller.list(page(i64::MAX, i64::MAX)).await.meta.unwrap().per_page, 100);
}
