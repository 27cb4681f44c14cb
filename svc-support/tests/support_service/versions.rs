//! A change raises the version of its record by one, and the log has the record exactly as it is shown.

use std::fmt::Debug;

use chassis_testing::{eventually, run_scans};
use chrono::TimeDelta;
use prost::Message;
use proto::support::ticket_message_service_client::TicketMessageServiceClient;
use proto::support::ticket_service_client::TicketServiceClient;
use proto::support::{
    CreateTicketStatusRequest, DeleteEmailDomainRequest, DeleteTicketChannelRequest,
    DeleteTicketStatusRequest, EmailDomain, EmailDomainType, GetTicketMessageRequest, GetTicketRequest,
    ListEmailDomainsRequest, ListTicketChannelsRequest, ListTicketStatusesRequest, Ticket, TicketChannel,
    TicketChannelInput, TicketMail, TicketMessage, TicketStatus, UpdateTicketChannelRequest,
    UpdateTicketStatusRequest,
};
use serde_json::json;

use crate::dns::Dns;
use crate::domains::{self, domains};
use crate::world::{User, World, mail, text};

/// What the log has of a record.
struct Logged<'a> {
    world: &'a World,
    user: &'a User,
    kind: &'static str,
    id: String,
}

impl Logged<'_> {
    /// The record after its last change; `None` when it was removed.
    async fn last(&self) -> (i64, Option<Vec<u8>>) {
        let entries: Vec<(i64, Option<Vec<u8>>)> = sqlx::query_as(
            "select version, image from support.log where account_id = $1 and kind = $2 and record_id = $3
                and change is not null order by version",
        )
        .bind(self.user.account().id)
        .bind(self.kind)
        .bind(&self.id)
        .fetch_all(&mut self.world.database.connect().await)
        .await
        .unwrap();
        let versions: Vec<i64> = entries.iter().map(|(version, _)| *version).collect();
        assert_eq!(versions, (1..).take(entries.len()).collect::<Vec<_>>(), "one entry for each change");
        entries.into_iter().next_back().unwrap()
    }

    /// Checks that the last change was to this version, and that the log has what is shown, byte by byte.
    async fn is(&self, version: i64, shown: &(impl Message + Debug)) {
        assert_eq!(self.last().await, (version, Some(shown.encode_to_vec())), "{shown:?}");
        self.world.clock.advance(TimeDelta::seconds(1));
    }
}

async fn ticket(user: &User, id: &str) -> Ticket {
    let request = user.mesh.request(GetTicketRequest { id: id.to_owned() });
    let mut tickets = TicketServiceClient::new(user.channel());
    tickets.get_ticket(request).await.unwrap().into_inner().data.unwrap()
}

async fn message(user: &User, ticket: &str, id: &str) -> TicketMessage {
    let request = GetTicketMessageRequest { id: ticket.to_owned(), message_id: id.to_owned() };
    let mut messages = TicketMessageServiceClient::new(user.channel());
    let answer = messages.get_ticket_message(user.mesh.request(request)).await.unwrap();
    answer.into_inner().data.unwrap()
}

fn mail_of(message: &TicketMessage) -> TicketMail {
    message.meta.as_ref().unwrap().mail()
}

/// The first channel of the list.
async fn channel(user: &User, active: &str) -> TicketChannel {
    let request = user.mesh.request(ListTicketChannelsRequest { active: active.to_owned() });
    user.channels().list_ticket_channels(request).await.unwrap().into_inner().data.remove(0)
}

async fn statuses(user: &User, active: &str) -> Vec<TicketStatus> {
    let request = user.mesh.request(ListTicketStatusesRequest { active: active.to_owned() });
    user.statuses().list_ticket_statuses(request).await.unwrap().into_inner().data
}

/// The only domain of the account.
async fn domain(user: &User) -> EmailDomain {
    let request = user.mesh.request(ListEmailDomainsRequest::default());
    domains(user).list_email_domains(request).await.unwrap().into_inner().data.remove(0)
}

#[tokio::test]
async fn a_ticket_counts_its_changes_and_its_messages() {
    let world = World::new().await;
    let user = world.user().await;
    let created = user.ann().await;
    let id = text(&created, "id");
    let logged = Logged { world: &world, user: &user, kind: "ticket", id: id.clone() };
    assert_eq!(created["meta"]["version"], 1);
    logged.is(1, &ticket(&user, &id).await).await;
    for (version, body) in [
        (1, json!({"subject": "Bread"})),
        (2, json!({"subject": "Rolls", "status": "solved"})),
        (2, json!({"status": "solved"})),
    ] {
        assert_eq!(user.patch(&id, body).await.expect(200).at("/data/meta/version"), version);
        logged.is(version, &ticket(&user, &id).await).await;
    }
    user.write(&id, json!({"body": "n", "type": "note"})).await.expect(201);
    logged.is(3, &ticket(&user, &id).await).await;
    user.reply(&id, "Hello").await;
    logged.is(4, &ticket(&user, &id).await).await;
    for _ in 0..2 {
        user.receive(&mail("1@x", "", "Re: [T-00001]", "Thank you")).await;
        logged.is(5, &ticket(&user, &id).await).await;
    }
}

#[tokio::test]
async fn a_ticket_that_a_mail_opens_has_that_mail_in_its_first_version() {
    let world = World::new().await;
    let user = world.user().await;
    let opened = user.receive(&mail("1@x", "", "Bread", "Where is it?")).await;
    let logged = Logged { world: &world, user: &user, kind: "ticket", id: opened.ticket_id.clone() };
    let shown = ticket(&user, &opened.ticket_id).await;
    assert_eq!(shown.meta.as_ref().unwrap().message_count, 1);
    logged.is(1, &shown).await;
    let logged = Logged { kind: "ticket_message", id: opened.message_id.clone(), ..logged };
    let shown = message(&user, &opened.ticket_id, &opened.message_id).await;
    assert_eq!(shown.body, "Where is it?");
    logged.is(1, &shown).await;
}

#[tokio::test]
async fn a_report_that_time_has_passed_does_not_change_a_ticket() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let logged = Logged { world: &world, user: &user, kind: "ticket", id: id.clone() };
    world.clock.advance(TimeDelta::days(3));
    run_scans(&world.support, &user.mesh).await;
    logged.is(1, &ticket(&user, &id).await).await;
    user.patch(&id, json!({"subject": "Rolls", "status": "closed"})).await.expect(200);
    logged.is(2, &ticket(&user, &id).await).await;
    let events: Vec<(String, i64)> = sqlx::query_as(
        "select event, sequence from support.log where account_id = $1 and event is not null order by id",
    )
    .bind(user.account().id)
    .fetch_all(&mut world.database.connect().await)
    .await
    .unwrap();
    let (kinds, sequences): (Vec<String>, Vec<i64>) = events.into_iter().unzip();
    assert_eq!(kinds, ["ticket.created", "ticket.stale", "ticket.status_changed", "ticket.closed"]);
    assert!(sequences.is_sorted_by(|one, next| one < next), "{sequences:?}");
}

#[tokio::test]
async fn a_message_changes_when_its_mail_is_delivered() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let reply = text(&user.write(&id, json!({"html": "<p>Hello</p>"})).await.expect(201).at("/data"), "id");
    let logged = Logged { world: &world, user: &user, kind: "ticket_message", id: reply.clone() };
    eventually("the mail was delivered", async || {
        mail_of(&message(&user, &id, &reply).await) == TicketMail::Sent
    })
    .await;
    let shown = message(&user, &id, &reply).await;
    assert_eq!(shown.meta.as_ref().unwrap().html, "<p>Hello</p>");
    logged.is(2, &shown).await;
    let note = user.write(&id, json!({"body": "n", "type": "note"})).await.expect(201).at("/data");
    let note = text(&note, "id");
    let logged = Logged { id: note.clone(), ..logged };
    logged.is(1, &message(&user, &id, &note).await).await;
    let ticket = ticket(&user, &id).await;
    assert_eq!(ticket.meta.unwrap().version, 3, "a delivery is no change of the ticket");
}

#[tokio::test]
async fn a_message_stays_as_it_is_while_its_mail_is_deferred_and_changes_when_it_is_refused() {
    let world = World::new().await;
    world.sink.refuse_recipient("ann@client.example", "450 later");
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let reply = text(&user.reply(&id, "Hello").await, "id");
    let logged = Logged { world: &world, user: &user, kind: "ticket_message", id: reply.clone() };
    eventually("the mail was deferred", async || {
        let sql = "select last_error <> '' from support.mail where account_id = $1";
        let deferred = sqlx::query_scalar(sql).bind(user.account().id);
        deferred.fetch_one(&mut world.database.connect().await).await.unwrap()
    })
    .await;
    let shown = message(&user, &id, &reply).await;
    assert_eq!(mail_of(&shown), TicketMail::Queued);
    logged.is(1, &shown).await;
    world.sink.refuse_recipient("ann@client.example", "550 unknown");
    world.clock.advance(TimeDelta::hours(1));
    eventually("the mail was given up", async || {
        mail_of(&message(&user, &id, &reply).await) == TicketMail::Failed
    })
    .await;
    logged.is(2, &message(&user, &id, &reply).await).await;
}

#[tokio::test]
async fn a_channel_counts_its_changes() {
    let world = World::new().await;
    let user = world.user().await;
    let first = channel(&user, "1").await;
    let logged = Logged { world: &world, user: &user, kind: "ticket_channel", id: first.id.clone() };
    logged.is(1, &first).await;
    let input = |name: &str, active| TicketChannelInput {
        name: name.into(),
        active: Some(active),
        order: 1,
        ..TicketChannelInput::default()
    };
    for (version, name, active) in [(1, "Support", true), (2, "Desk", false), (2, "Desk", false)] {
        let request = UpdateTicketChannelRequest { id: first.id.clone(), channel: Some(input(name, active)) };
        let changed = user.channels().update_ticket_channel(user.mesh.request(request)).await.unwrap();
        assert_eq!(changed.into_inner().data.unwrap().meta.unwrap().version, version);
        logged.is(version, &channel(&user, if active { "1" } else { "0" }).await).await;
    }
    let added = user.add_channel(input("Other", true)).await.unwrap();
    let other = Logged { id: added.id, ..logged };
    other.is(1, &channel(&user, "1").await).await;
    let request = user.mesh.request(DeleteTicketChannelRequest { id: other.id.clone() });
    user.channels().delete_ticket_channel(request).await.unwrap();
    assert_eq!(other.last().await, (2, None));
}

#[tokio::test]
async fn a_status_counts_its_changes() {
    let world = World::new().await;
    let user = world.user().await;
    let logged = |id: &str| Logged { world: &world, user: &user, kind: "ticket_status", id: id.to_owned() };
    for status in statuses(&user, "1").await {
        logged(&status.id).is(1, &status).await;
    }
    let request = CreateTicketStatusRequest { name: "triage".into(), ..Default::default() };
    let made = user.statuses().create_ticket_status(user.mesh.request(request)).await.unwrap();
    let made = made.into_inner().data.unwrap();
    logged(&made.id).is(1, &statuses(&user, "1").await[0]).await;
    for (version, active, order) in [(1, true, 0), (2, false, 0), (2, false, 0), (3, false, 9)] {
        let request = UpdateTicketStatusRequest {
            id: made.id.clone(),
            active,
            order,
            ..UpdateTicketStatusRequest::default()
        };
        let changed = user.statuses().update_ticket_status(user.mesh.request(request)).await.unwrap();
        assert_eq!(changed.into_inner().data.unwrap().version, version);
        let listed = statuses(&user, if active { "1" } else { "0" }).await;
        logged(&made.id).is(version, &listed[0]).await;
    }
    let request = user.mesh.request(DeleteTicketStatusRequest { id: made.id.clone() });
    user.statuses().delete_ticket_status(request).await.unwrap();
    assert_eq!(logged(&made.id).last().await, (4, None));
}

#[tokio::test]
async fn a_domain_counts_its_changes_and_goes_on_when_it_comes_back() {
    const HOST: &str = "bakery.example";
    let dns = Dns::start().await;
    let world = domains::world(&dns).await;
    let user = world.user().await;
    let logged = Logged { world: &world, user: &user, kind: "email_domain", id: HOST.to_owned() };
    let add = async |kind| domains::add(&user, HOST, kind).await.unwrap();
    let verify = async || domains::verify(&user, HOST).await.unwrap();
    let added = add(EmailDomainType::Sending).await;
    logged.is(1, &domain(&user).await).await;
    add(EmailDomainType::Sending).await;
    verify().await;
    logged.is(1, &domain(&user).await).await;
    domains::set(&dns, &added);
    for _ in 0..2 {
        let verified = verify().await;
        assert!(domains::is_verified(&verified));
        assert_eq!(verified.domain, Some(domain(&user).await));
        logged.is(2, &domain(&user).await).await;
    }
    add(EmailDomainType::Full).await;
    logged.is(3, &domain(&user).await).await;
    let request = DeleteEmailDomainRequest { domain: HOST.into(), ..Default::default() };
    domains(&user).delete_email_domain(user.mesh.request(request)).await.unwrap();
    assert_eq!(logged.last().await, (4, None));
    add(EmailDomainType::Sending).await;
    logged.is(5, &domain(&user).await).await;
}
