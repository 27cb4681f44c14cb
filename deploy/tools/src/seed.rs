//! Fills an account with sample data over the public API, as an integration would.
//!
//! It owns the order of the requests; what is created is in `demo.json` beside it. Every request carries an
//! idempotency key made from the entry, so that a second run makes nothing twice.

use std::collections::HashMap;
use std::process::ExitCode;

use clap::Parser;
use deploy_tools::http::{Connection, Request, authority};
use serde::Deserialize;
use serde_json::Value;

const DEMO: &str = include_str!("demo.json");

/// Fill an account with sample clients, suppliers and links.
///
/// Does nothing when the account has clients already.
#[derive(Parser)]
#[command(name = "seed")]
struct Options {
    /// Address of the gateway
    #[arg(long, env = "BASE_URL", default_value = "http://127.0.0.1:7700")]
    base_url: String,
    /// API key with the scopes `relations.read` and `relations.write`
    #[arg(long, env = "API_KEY", hide_env_values = true)]
    key: String,
}

#[derive(Deserialize)]
struct Demo {
    clients: Vec<Value>,
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

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run(&Options::parse()).await {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("seed: {fault}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options) -> Result<String, String> {
    let demo: Demo = serde_json::from_str(DEMO).map_err(|fault| format!("demo.json: {fault}"))?;
    let mut api = Api::connect(options).await?;
    let present = api.call("GET", "/v1/clients?per_page=1", None, None).await?;
    if let Some(total) = present["meta"]["total"].as_u64().filter(|total| *total > 0) {
        return Ok(format!("The account has {total} clients already; no sample data added."));
    }
    let mut ids = HashMap::new();
    for client in &demo.clients {
        let name = text(client, "external_id")?;
        let created =
            api.call("POST", "/v1/clients", Some(&format!("seed-client-{name}")), Some(client)).await?;
        ids.insert(name.to_owned(), text(&created["data"], "id")?.to_owned());
    }
    println!("{} clients", demo.clients.len());
    for supplier in &demo.suppliers {
        let key = format!("seed-supplier-{}", text(supplier, "email")?);
        api.call("POST", "/v1/suppliers", Some(&key), Some(supplier)).await?;
    }
    println!("{} suppliers", demo.suppliers.len());
    for link in &demo.links {
        api.link(link, &ids).await?;
    }
    println!("{} links", demo.links.len());
    Ok("Sample data is in place.".to_owned())
}

/// The connection and what every request needs.
struct Api<'a> {
    connection: Connection,
    authority: &'a str,
    key: &'a str,
}

impl<'a> Api<'a> {
    async fn connect(options: &'a Options) -> Result<Self, String> {
        let authority = authority(&options.base_url)?;
        let connection = Connection::open(authority)
            .await
            .map_err(|fault| format!("cannot reach {authority}: {fault}"))?;
        Ok(Self { connection, authority, key: &options.key })
    }

    async fn link(&mut self, link: &Link, ids: &HashMap<String, String>) -> Result<(), String> {
        let id = |name: &str| {
            ids.get(name).ok_or_else(|| format!("demo.json links {name}, which it does not create"))
        };
        let body = serde_json::json!({
            "client_id": id(&link.person)?, "function": link.function, "department": link.department
        });
        let path = format!("/v1/clients/{}/links", id(&link.company)?);
        let key = format!("seed-link-{}-{}", link.company, link.person);
        self.call("POST", &path, Some(&key), Some(&body)).await.map(drop)
    }

    /// The answer's JSON; anything but 2xx is an error that shows what the server said.
    async fn call(
        &mut self,
        method: &str,
        target: &str,
        idempotency_key: Option<&str>,
        body: Option<&Value>,
    ) -> Result<Value, String> {
        let body = body.map(Value::to_string);
        let mut message = Vec::new();
        let request = Request { method, target, key: Some(self.key), idempotency_key, body: body.as_deref() };
        request.render(self.authority, &mut message);
        let answer =
            self.connection.send(&message).await.map_err(|fault| format!("{method} {target}: {fault}"))?;
        if !(200..300).contains(&answer.status) {
            let sent = body.map(|body| format!("\n  sent:   {body}")).unwrap_or_default();
            return Err(format!(
                "{method} {target} was answered with {}{sent}\n  answer: {}",
                answer.status,
                answer.text()
            ));
        }
        serde_json::from_slice(answer.body)
            .map_err(|fault| format!("{method} {target}: the answer is not JSON: {fault}"))
    }
}

fn text<'v>(entry: &'v Value, field: &str) -> Result<&'v str, String> {
    entry[field].as_str().ok_or_else(|| format!("no {field} in {entry}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_data_is_complete_and_its_links_name_clients_of_the_right_type() {
        let demo: Demo = serde_json::from_str(DEMO).unwrap();
        let types: HashMap<&str, &str> = demo
            .clients
            .iter()
            .map(|client| (text(client, "external_id").unwrap(), text(client, "type").unwrap()))
            .collect();
        assert_eq!(types.len(), demo.clients.len(), "external ids are unique");
        for link in &demo.links {
            assert_eq!(types.get(link.company.as_str()), Some(&"company"), "{}", link.company);
            assert_eq!(types.get(link.person.as_str()), Some(&"private"), "{}", link.person);
        }
    }

    #[test]
    fn every_iban_of_the_sample_data_has_right_check_digits() {
        let demo: Demo = serde_json::from_str(DEMO).unwrap();
        for iban in demo.clients.iter().filter_map(|client| client["iban"].as_str()) {
            let rotated = format!("{}{}", &iban[4..], &iban[..4]);
            let rest = rotated.chars().fold(0, |rest, symbol| {
                let value = symbol.to_digit(36).unwrap();
                if value > 9 { (rest * 100 + value) % 97 } else { (rest * 10 + value) % 97 }
            });
            assert_eq!(rest, 1, "{iban}");
        }
    }
}
