//! Clients, suppliers and the links between them.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::{Api, text};

const DATA: &str = include_str!("relations.json");

#[derive(Deserialize)]
pub(crate) struct Relations {
    pub clients: Vec<Value>,
    suppliers: Vec<Value>,
    links: Vec<Link>,
}

/// A person who works for a company, both named by their external ids.
#[derive(Deserialize)]
struct Link {
    company: String,
    person: String,
    function: String,
    department: String,
}

pub(crate) fn data() -> Result<Relations, String> {
    serde_json::from_str(DATA).map_err(|fault| format!("relations.json: {fault}"))
}

/// Adds them to an account without clients.
pub(crate) async fn add(api: &mut Api) -> Result<(), String> {
    if api.total("/v1/clients?per_page=1").await? > 0 {
        return Ok(());
    }
    let data = data()?;
    let mut ids = HashMap::new();
    for client in &data.clients {
        let name = text(client, "external_id")?;
        let created = api.post("/v1/clients", &format!("seed-client-{name}"), client).await?;
        ids.insert(name.to_owned(), text(&created["data"], "id")?.to_owned());
    }
    println!("{} clients", data.clients.len());
    for supplier in &data.suppliers {
        api.post("/v1/suppliers", &format!("seed-supplier-{}", text(supplier, "email")?), supplier).await?;
    }
    println!("{} suppliers", data.suppliers.len());
    for link in &data.links {
        add_link(api, link, &ids).await?;
    }
    println!("{} links", data.links.len());
    Ok(())
}

async fn add_link(api: &mut Api, link: &Link, ids: &HashMap<String, String>) -> Result<(), String> {
    let id = |name: &str| {
        ids.get(name).ok_or_else(|| format!("relations.json links {name}, which it does not create"))
    };
    let body = json!({
        "client_id": id(&link.person)?, "function": link.function, "department": link.department
    });
    let path = format!("/v1/clients/{}/links", id(&link.company)?);
    api.post(&path, &format!("seed-link-{}-{}", link.company, link.person), &body).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_data_is_complete_and_its_links_name_clients_of_the_right_type() {
        let data = data().unwrap();
        let types: HashMap<&str, &str> = data
            .clients
            .iter()
            .map(|client| (text(client, "external_id").unwrap(), text(client, "type").unwrap()))
            .collect();
        assert_eq!(types.len(), data.clients.len(), "external ids are unique");
        for link in &data.links {
            assert_eq!(types.get(link.company.as_str()), Some(&"company"), "{}", link.company);
            assert_eq!(types.get(link.person.as_str()), Some(&"private"), "{}", link.person);
        }
    }

    #[test]
    fn every_iban_of_the_sample_data_has_right_check_digits() {
        for iban in data().unwrap().clients.iter().filter_map(|client| client["iban"].as_str()) {
            assert!(chassis_base::formats::bank::normalise_iban(iban).is_some(), "{iban}");
        }
    }
}
