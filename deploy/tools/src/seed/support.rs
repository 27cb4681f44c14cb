//! Tickets with their threads, one for each status. Clients write by mail, which comes in over gRPC; we answer over the
//! public API.

use deploy_tools::mesh::{MeshCaller, service_error};
use proto::support::ReceiveMailRequest;
use proto::support::mail_intake_service_client::MailIntakeServiceClient;
use serde::Deserialize;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::api::{Api, text};
use crate::relations;

const SERVICE: &str = "support";
const DATA: &str = include_str!("support.json");

#[derive(Deserialize)]
struct Ticket {
    /// Makes its idempotency keys and mails its own.
    key: String,
    /// The external id of a client.
    client: String,
    subject: String,
    status: String,
    priority: String,
    thread: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    /// `client`, `us` or `note`.
    from: String,
    text: String,
}

fn data() -> Result<Vec<Ticket>, String> {
    serde_json::from_str(DATA).map_err(|fault| format!("support.json: {fault}"))
}

/// Where clients' mail is handed over, and who may do so.
pub(crate) struct Clients<'a> {
    intake: MailIntakeServiceClient<Channel>,
    mesh: &'a MeshCaller,
}

impl<'a> Clients<'a> {
    pub(crate) async fn open(url: &str, mesh: &'a MeshCaller) -> Result<Self, String> {
        let intake = MailIntakeServiceClient::new(mesh.connect(SERVICE, url).await?);
        Ok(Self { intake, mesh })
    }

    /// Hands a mail over, and returns the id of its ticket. The same mail again is recognised.
    async fn write(&mut self, mail: String) -> Result<String, String> {
        let message = ReceiveMailRequest { message: mail.into_bytes().into(), ..Default::default() };
        let answer = self.intake.receive_mail(self.mesh.request(message)?).await;
        Ok(answer.map_err(service_error(SERVICE))?.into_inner().ticket_id)
    }
}

/// Adds them to an account without tickets.
pub(crate) async fn add(api: &mut Api, clients: &mut Clients<'_>) -> Result<(), String> {
    if api.total("/v1/tickets?per_page=1").await? > 0 {
        return Ok(());
    }
    let tickets = data()?;
    let sample_clients = relations::data()?.clients;
    for ticket in &tickets {
        let client = sample_clients.iter().find(|client| client["external_id"] == ticket.client.as_str());
        let client = client.ok_or_else(|| format!("support.json names the client {}", ticket.client))?;
        add_ticket(api, clients, ticket, client).await?;
    }
    println!("{} tickets", tickets.len());
    Ok(())
}

async fn add_ticket(
    api: &mut Api,
    clients: &mut Clients<'_>,
    ticket: &Ticket,
    client: &Value,
) -> Result<(), String> {
    let Ticket { key, status, priority, .. } = ticket;
    let mut id = String::new();
    for (position, message) in ticket.thread.iter().enumerate() {
        if message.from == "client" {
            id = clients.write(mail(ticket, position, client)?).await?;
            continue;
        }
        let kind = if message.from == "note" { "note" } else { "reply" };
        let body = json!({"body": message.text, "type": kind, "author_name": "Demo"});
        api.post(&format!("/v1/tickets/{id}/messages"), &format!("seed-ticket-{key}-{position}"), &body)
            .await?;
    }
    let found = api.get(&format!("/v1/clients?search={}", text(client, "email")?)).await?;
    let body = json!({"status": status, "priority": priority, "client_id": found["data"][0]["id"]});
    api.patch(&format!("/v1/tickets/{id}"), &format!("seed-ticket-{key}"), &body).await?;
    Ok(())
}

/// A client's mail; an answer refers to the first one of its thread.
fn mail(ticket: &Ticket, position: usize, client: &Value) -> Result<String, String> {
    let Ticket { key, subject, thread, .. } = ticket;
    let (name, email) =
        (format!("{} {}", text(client, "firstname")?, text(client, "lastname")?), text(client, "email")?);
    let answer =
        if position == 0 { String::new() } else { format!("In-Reply-To: <demo-{key}-0@example.com>\r\n") };
    let body = thread.get(position).map_or("", |message| &message.text).replace('\n', "\r\n");
    Ok(format!(
        "From: {name} <{email}>\r\nTo: support@example.com\r\nSubject: {subject}\r\n\
         Message-ID: <demo-{key}-{position}@example.com>\r\n{answer}Content-Type: text/plain; charset=utf-8\r\n\r\n{body}\r\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_ticket_of_a_known_client_that_begins_with_a_mail() {
        let (tickets, clients) = (data().unwrap(), relations::data().unwrap().clients);
        let statuses: Vec<&str> = tickets.iter().map(|ticket| ticket.status.as_str()).collect();
        assert_eq!(statuses, ["new", "open", "waiting", "solved", "closed"]);
        for ticket in &tickets {
            let client = clients.iter().find(|client| client["external_id"] == ticket.client.as_str());
            mail(ticket, 0, client.unwrap()).unwrap();
            assert_eq!(ticket.thread[0].from, "client", "{}", ticket.subject);
        }
    }
}
