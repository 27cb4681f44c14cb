//! The door for mail: who is let in, and what is answered when.

use proto::support::ReceiveMailRequest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

use crate::world::{DOMAIN, User, World, mail, text};

/// Says all of it at once and hears everything until the other side has said goodbye.
async fn talk(world: &World, lines: &[&str]) -> String {
    let mut stream = TcpStream::connect(world.door).await.unwrap();
    let text = lines.join("\r\n") + "\r\n";
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.unwrap();
    heard
}

fn codes(heard: &str) -> Vec<&str> {
    heard.lines().filter(|line| line.as_bytes().get(3) == Some(&b' ')).map(|line| &line[..3]).collect()
}

#[tokio::test]
async fn a_mail_for_a_channel_becomes_a_ticket() {
    let world = World::new().await;
    let user = world.user().await;
    let inbound = user.inbound().await;
    world
        .send("ann@client.example", &[&inbound], &mail("1@x", "", "Bread", "Hello\r\n.\r\ndots"))
        .await
        .unwrap();
    let list = user.api.get("/v1/tickets").await;
    assert_eq!(list.at("/meta/total"), 1);
    let messages = user.messages(list.at("/data/0/id").as_str().unwrap()).await;
    assert_eq!(messages[0]["body"], "Hello\n.\ndots");
}

#[tokio::test]
async fn only_those_who_are_known_are_let_in() {
    let world = World::new().await;
    let user = world.user().await;
    let inbound = user.inbound().await;
    let (kind, rest) = inbound.split_once('+').unwrap();
    // Of an account that is not there.
    let wrong = format!("{kind}+z{}", &rest[1..]);
    for address in
        [wrong.as_str(), "victim@gmail.example", &format!("reply+abc@{DOMAIN}"), "postmaster@localhost"]
    {
        let heard =
            talk(&world, &["EHLO x", "MAIL FROM:<a@b.nl>", &format!("RCPT TO:<{address}>"), "DATA", "QUIT"])
                .await;
        assert_eq!(codes(&heard), ["220", "250", "250", "550", "503", "221"], "{address}: {heard}");
    }
    let tried: Vec<String> = (0..20).map(|number| format!("RCPT TO:<x{number}@{DOMAIN}>")).collect();
    let mut lines = vec!["HELO x", "MAIL FROM:<a@b.nl>"];
    lines.extend(tried.iter().map(String::as_str));
    let heard = talk(&world, &lines).await;
    assert_eq!(codes(&heard).iter().filter(|code| **code == "550").count(), 10);
    assert!(heard.trim_end().ends_with("421 4.7.0 too many mistakes"), "{heard}");
}

#[tokio::test]
async fn a_channel_that_is_switched_off_takes_no_mail_in() {
    let world = World::new().await;
    let user = world.user().await;
    let inbound = user.inbound().await;
    sqlx::query("update support.channel set active = false where account_id = $1")
        .bind(user.account().id)
        .execute(&mut world.database.connect().await)
        .await
        .unwrap();
    let heard =
        talk(&world, &["HELO x", "MAIL FROM:<a@b.nl>", &format!("RCPT TO:<{inbound}>"), "QUIT"]).await;
    assert_eq!(codes(&heard), ["220", "250", "250", "550", "221"]);
}

#[tokio::test]
async fn the_conversation_keeps_its_order_and_its_limits() {
    let world = World::new().await;
    let heard = talk(
        &world,
        &[
            "MAIL FROM:<a@b.nl>",
            "EHLO x",
            "RCPT TO:<a@b.nl>",
            "DATA",
            "MAIL FROM:a@b.nl",
            "STARTTLS",
            "VRFY a",
            "MAIL FROM:<a@b.nl> SIZE=999999999",
            "MAIL FROM:<a@b.nl>",
            "MAIL FROM:<a@b.nl>",
            "RSET",
            "NOOP",
            "QUIT",
        ],
    )
    .await;
    assert_eq!(
        codes(&heard),
        ["220", "503", "250", "503", "503", "501", "500", "252", "552", "250", "503", "250", "250", "221"],
        "{heard}"
    );
    let long = format!("NOOP {}", "x".repeat(5000));
    assert_eq!(codes(&talk(&world, &[&long]).await), ["220", "500"]);
}

#[tokio::test]
async fn over_lmtp_each_recipient_has_an_answer_and_each_account_a_ticket() {
    let world = World::new().await;
    let (one, two) = (world.user().await, world.user().await);
    let (first, second) = (one.inbound().await, two.inbound().await);
    let heard = talk(
        &world,
        &[
            "LHLO x",
            "MAIL FROM:<a@b.nl>",
            &format!("RCPT TO:<{first}>"),
            &format!("RCPT TO:<{second}>"),
            &format!("RCPT TO:<{first}>"),
            "DATA",
            "From: a@b.nl",
            "Message-ID: <1@x>",
            "",
            "Hello",
            ".",
            "QUIT",
        ],
    )
    .await;
    assert_eq!(
        codes(&heard),
        ["220", "250", "250", "250", "250", "250", "354", "250", "250", "250", "221"],
        "{heard}"
    );
    for user in [one, two] {
        assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 1);
    }
}

#[tokio::test]
async fn a_mail_that_cannot_be_stored_is_to_come_again() {
    let world = World::new().await;
    let user = world.user().await;
    let inbound = user.inbound().await;
    let connection = &mut world.database.connect().await;
    sqlx::raw_sql("alter table support.message rename to hidden").execute(&mut *connection).await.unwrap();
    let mail = mail("1@x", "", "Bread", "Hello");
    let refused = world.send("a@b.nl", &[&inbound], &mail).await.unwrap_err();
    assert!(refused.contains("451") || refused.contains("transient"), "{refused}");
    sqlx::raw_sql("alter table support.hidden rename to message").execute(&mut *connection).await.unwrap();
    world.send("a@b.nl", &[&inbound], &mail).await.unwrap();
    world.send("a@b.nl", &[&inbound], &mail).await.unwrap();
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 1, "once, however often it comes");
}

#[tokio::test]
async fn a_bounce_is_kept() {
    let world = World::new().await;
    let user = world.user().await;
    let inbound = user.inbound().await;
    world.send("", &[&inbound], &mail("1@x", "", "Undeliverable", "x")).await.unwrap();
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 1);
}

/// A mail with a file of so many bytes.
fn with_file(id: &str, bytes: usize) -> String {
    let head = "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n";
    let line = "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4\r\n";
    let lines = line.repeat(bytes.div_ceil(54));
    let body = format!(
        "--x\r\nContent-Type: text/plain\r\n\r\nSee here\r\n--x\r\nContent-Type: image/png; name=\"a.png\"\r\n\
         Content-Transfer-Encoding: base64\r\n\r\n{lines}--x--"
    );
    mail(id, head, "A picture", &body)
}

#[tokio::test]
async fn a_file_that_could_not_be_kept_is_refused_at_the_door() {
    let world = World::with(&["--files-max-bytes", "100000"]).await;
    let user = world.user().await;
    let inbound = user.inbound().await;
    let refused = world.send("a@b.nl", &[&inbound], &with_file("1@x", 100_500)).await.unwrap_err();
    assert!(refused.contains("552"), "{refused}");
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 0);
    world.send("a@b.nl", &[&inbound], &with_file("2@x", 99_000)).await.unwrap();
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 1);
}

/// Begins a mail, hears what is answered to `DATA`, and goes on with some bytes if it may.
async fn begin_mail(world: &World, to: &str, size: &str, bytes: usize) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(world.door).await.unwrap();
    let lines = format!("EHLO x\r\nMAIL FROM:<a@b.nl>{size}\r\nRCPT TO:<{to}>\r\nDATA\r\n");
    stream.write_all(lines.as_bytes()).await.unwrap();
    let mut heard = String::new();
    while !heard.contains("354 ") && !heard.contains("452 ") {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "{heard}");
        heard.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    let line = format!("{}\r\n", "x".repeat(70));
    stream.write_all(line.repeat(bytes / line.len()).as_bytes()).await.unwrap();
    (stream, codes(&heard).last().unwrap().to_string())
}

#[tokio::test]
async fn mails_on_their_way_share_the_memory_that_there_is() {
    let world = World::with(&["--mail-memory-bytes", "800000"]).await;
    let (one, two) = (world.user().await, world.user().await);
    let (first, second) = (one.inbound().await, two.inbound().await);
    // All of them come from the same address, which has half of it.
    let (mut held, said) = begin_mail(&world, &first, " SIZE=300000", 0).await;
    assert_eq!(said, "354");
    // One that says how large it is waits in vain, one that does not finds out on the way.
    let (_, said) = begin_mail(&world, &second, " SIZE=200000", 0).await;
    assert_eq!(said, "452");
    let (mut late, said) = begin_mail(&world, &second, "", 200_000).await;
    assert_eq!(said, "354");
    late.write_all(b".\r\nQUIT\r\n").await.unwrap();
    let mut heard = String::new();
    late.read_to_string(&mut heard).await.unwrap();
    assert_eq!(codes(&heard), ["452", "221"], "{heard}");
    // Nobody has it for ever.
    held.write_all(b"From: a@b.nl\r\n\r\nHello\r\n.\r\nQUIT\r\n").await.unwrap();
    let mut heard = String::new();
    held.read_to_string(&mut heard).await.unwrap();
    assert_eq!(codes(&heard), ["250", "221"], "{heard}");
    world.send("a@b.nl", &[&second], &mail("1@x", "", "Bread", &"x".repeat(200_000))).await.unwrap();
    let heard = talk(&world, &["EHLO x", "MAIL FROM:<a@b.nl> SIZE=400001", "QUIT"]).await;
    assert!(heard.contains("SIZE 400000"), "{heard}");
    assert_eq!(codes(&heard), ["220", "250", "552", "221"]);
}

#[tokio::test]
async fn mails_that_are_handed_over_share_the_same_memory() {
    let world = World::with(&["--mail-memory-bytes", "800000"]).await;
    let (one, two) = (world.user().await, world.user().await);
    // An account has half of it, and one that is handed over takes as much at first.
    let (held, said) = begin_mail(&world, &one.inbound().await, " SIZE=300000", 0).await;
    assert_eq!(said, "354");
    let receive = async |user: &User| {
        let message = mail("1@x", "", "Bread", "Hello").into_bytes().into();
        user.try_receive(ReceiveMailRequest { message, ..ReceiveMailRequest::default() }).await
    };
    assert_eq!(receive(&one).await.unwrap_err().code(), Code::Unavailable);
    receive(&two).await.unwrap();
    drop(held);
    receive(&one).await.unwrap();
}

#[tokio::test]
async fn one_address_cannot_take_every_place_at_the_door() {
    let world = World::new().await;
    let mut silent = Vec::new();
    let (mut let_in, mut refused) = (0, 0);
    while refused == 0 {
        let mut stream = TcpStream::connect(world.door).await.unwrap();
        let mut code = [0; 3];
        stream.read_exact(&mut code).await.unwrap();
        if &code == b"220" {
            let_in += 1;
        } else {
            refused += 1;
        }
        silent.push(stream);
    }
    assert_eq!(let_in, 32);
}

#[tokio::test]
async fn a_client_that_goes_away_in_the_middle_leaves_nothing() {
    let world = World::new().await;
    let user = world.user().await;
    let inbound = user.inbound().await;
    let mut stream = TcpStream::connect(world.door).await.unwrap();
    let half =
        format!("HELO x\r\nMAIL FROM:<a@b.nl>\r\nRCPT TO:<{inbound}>\r\nDATA\r\nFrom: a@b.nl\r\n\r\nHal");
    stream.write_all(half.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.unwrap();
    assert_eq!(codes(&heard), ["220", "250", "250", "250", "354"]);
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 0);
}

#[tokio::test]
async fn a_mail_to_a_ticket_needs_no_other_hint() {
    let world = World::new().await;
    let user = world.user().await;
    let id = text(&user.ann().await, "id");
    let secret: Vec<u8> = sqlx::query_scalar("select reply_secret from support.ticket")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    let own = svc_support::address::OwnDomain::new(DOMAIN);
    let address = own.reply(user.account().id, &secret.try_into().unwrap()).unwrap();
    let from_elsewhere = mail("1@x", "", "Other", "Hello").replace("ann@client", "somebody@elsewhere");
    world.send("x@elsewhere.example", &[&address.to_uppercase()], &from_elsewhere).await.unwrap();
    assert_eq!(user.messages(&id).await.len(), 1);
}
