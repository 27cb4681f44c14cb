//! Subscriptions in every state. Those with a first invoice date in the past get their invoices from the service itself,
//! and those whose end has passed are ended by it.

use chrono::NaiveDate;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::Api;
use crate::sales::day;

const DATA: &str = include_str!("subscriptions.json");

#[derive(Deserialize)]
struct Subscription {
    /// Unlike that of any other: it is how one is found again.
    title: String,
    /// By its external id; a draft may have none.
    client: Option<String>,
    frequency: String,
    /// These three in days from today.
    start: Option<i64>,
    end: Option<i64>,
    first: Option<i64>,
    day_of_month: Option<u32>,
    day_of_week: Option<u32>,
    lines: Vec<Value>,
}

fn data() -> Result<Vec<Subscription>, String> {
    serde_json::from_str(DATA).map_err(|fault| format!("subscriptions.json: {fault}"))
}

/// Adds those that are missing.
pub(crate) async fn add(api: &mut Api, today: NaiveDate) -> Result<(), String> {
    let all = data()?;
    for (number, subscription) in all.iter().enumerate() {
        subscription.add(api, today, &format!("seed-subscription-{number}")).await?;
    }
    println!("{} subscriptions", all.len());
    Ok(())
}

impl Subscription {
    async fn add(&self, api: &mut Api, today: NaiveDate, key: &str) -> Result<(), String> {
        if api.total(&format!("/v1/subscriptions?per_page=1&search={}", query(&self.title))).await? > 0 {
            return Ok(());
        }
        api.post("/v1/subscriptions", key, &self.body(today)).await.map(drop)
    }

    fn body(&self, today: NaiveDate) -> Value {
        let date = |from_now: Option<i64>| from_now.map(|from_now| day(today, from_now));
        json!({
            "title": self.title,
            "client_external_id": self.client,
            "frequency": self.frequency,
            "subscription_start": date(self.start),
            "subscription_end": date(self.end),
            "first_generate_date": date(self.first),
            "day_of_month": self.day_of_month,
            "day_of_week": self.day_of_week,
            "lines": self.lines,
        })
    }
}

/// A text as part of a query.
fn query(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let letter = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::api::text;

    #[test]
    fn subscriptions_name_clients_of_the_sample_data_and_are_told_apart_by_their_titles() {
        let relations = crate::relations::data().unwrap();
        let clients: HashSet<&str> =
            relations.clients.iter().map(|client| text(client, "external_id").unwrap()).collect();
        let all = data().unwrap();
        for subscription in &all {
            assert!(subscription.client.as_deref().is_none_or(|client| clients.contains(client)));
            let holders = all.iter().filter(|other| other.title.contains(&subscription.title)).count();
            assert_eq!(holders, 1, "{}", subscription.title);
            assert!(
                subscription.first.is_none_or(|first| subscription.start.is_some_and(|start| start <= first))
            );
        }
    }

    #[test]
    fn the_sample_has_every_state_and_one_with_invoices() {
        let all = data().unwrap();
        assert!(all.iter().any(|one| one.client.is_none() || one.start.is_none()), "a draft");
        assert!(all.iter().any(|one| one.end.is_some_and(|end| end < 0)), "one that has ended");
        assert!(all.iter().any(|one| one.first.is_some_and(|first| first < -31)), "one with invoices");
    }

    #[test]
    fn a_search_is_written_as_a_query() {
        assert_eq!(query("Café & co"), "Caf%C3%A9%20%26%20co");
    }
}
