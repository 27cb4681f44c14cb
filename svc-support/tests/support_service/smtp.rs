//! Mail over SMTP and LMTP: which recipients are accepted, and the replies.

use proto::support::ReceiveMailRequest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

use crate::world::{DOMAIN, User, World, mail, text};

/// Sends all lines and reads the replies until the server closes the connection.
async fn talk(world: &World, lines: &[&str]) -> String {
    let mut stream = TcpStream::connect(world.smtp_address).await.unwrap();
    let text = lines.join("\r\n") + "\r\n";
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut received = String::new();
    stream.read_to_string(&mut received).await.unwrap();
    received
}

fn codes(received: &str) -> Vec<&str> {
    received.lines().filter(|line| line.as_bytes().get(3) == Some(&b' ')).map(|line| &line[..3]).collect()
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
async fn only_addresses_of_tickets_and_channels_are_accepted() {
    let world = World::new().await;
    let user = world.user().await;
    let inbound = user.inbound().await;
    let (kind, rest) = inbound.split_once('+').unwrap();
    // Of an account that does not exist.
    let wrong = format!("{kind}+z{}", &rest[1..]);
    for address in
        [wrong.as_str(), "victim@gmail.example", &format!("reply+abc@{DOMAIN}"), "postmaster@localhost"]
    {
        let received =
            talk(&world, &["EHLO x", "MAIL FROM:<a@b.nl>", &format!("RCPT TO:<{address}>"), "DATA", "QUIT"])
                .await;
        assert_eq!(codes(&received), ["220", "250", "250", "550", "503", "221"], "{address}: {received}");
    }
    let tried: Vec<String> = (0..20).map(|number| format!("RCPT TO:<x{number}@{DOMAIN}>")).collect();
    let mut lines = vec!["HELO x", "MAIL FROM:<a@b.nl>"];
    lines.extend(tried.iter().map(String::as_str));
    let received = talk(&world, &lines).await;
    assert_eq!(codes(&received).iter().filter(|code| **code == "550").count(), 10);
    assert!(received.trim_end().ends_with("421 4.7.0 too many errors"), "{received}");
}

#[tokio::test]
async fn an_inactive_channel_receives_no_mail() {
    let world = World::new().await;
    let user = world.user().await;
    let inbound = user.inbound().await;
    sqlx::query("update support.channel set active = false where account_id = $1")
        .bind(user.account().id)
        .execute(&mut world.database.connect().await)
        .await
        .unwrap();
    let received =
        talk(&world, &["HELO x", "MAIL FROM:<a@b.nl>", &format!("RCPT TO:<{inbound}>"), "QUIT"]).await;
    assert_eq!(codes(&received), ["220", "250", "250", "550", "221"]);
}

#[tokio::test]
async fn commands_have_an_order_and_limits() {
    let world = World::new().await;
    let received = talk(
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
        codes(&received),
        ["220", "503", "250", "503", "503", "501", "500", "252", "552", "250", "503", "250", "250", "221"],
        "{received}"
    );
    let long = format!("NOOP {}", "x".repeat(5000));
    assert_eq!(codes(&talk(&world, &[&long]).await), ["220", "500"]);
}

#[tokio::test]
async fn over_lmtp_each_recipient_has_a_reply_and_each_account_a_ticket() {
    let world = World::new().await;
    let (one, two) = (world.user().await, world.user().await);
    let (first, second) = (one.inbound().await, two.inbound().await);
    let received = talk(
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
        codes(&received),
        ["220", "250", "250", "250", "250", "250", "354", "250", "250", "250", "221"],
        "{received}"
    );
    for user in [one, two] {
        assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 1);
    }
}

#[tokio::test]
async fn a_mail_that_cannot_be_stored_is_deferred() {
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
async fn a_bounce_is_stored() {
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
async fn a_mail_with_a_file_that_is_too_large_is_refused() {
    let world = World::with(&["--files-max-bytes", "100000"]).await;
    let user = world.user().await;
    let inbound = user.inbound().await;
    let refused = world.send("a@b.nl", &[&inbound], &with_file("1@x", 100_500)).await.unwrap_err();
    assert!(refused.contains("552"), "{refused}");
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 0);
    world.send("a@b.nl", &[&inbound], &with_file("2@x", 99_000)).await.unwrap();
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 1);
}

/// Begins a mail, reads the reply to `DATA`, and sends some bytes of the mail.
async fn begin_mail(world: &World, to: &str, size: &str, bytes: usize) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(world.smtp_address).await.unwrap();
    let lines = format!("EHLO x\r\nMAIL FROM:<a@b.nl>{size}\r\nRCPT TO:<{to}>\r\nDATA\r\n");
    stream.write_all(lines.as_bytes()).await.unwrap();
    let mut received = String::new();
    while !received.contains("354 ") && !received.contains("452 ") {
        let mut piece = [0; 1024];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "{received}");
        received.push_str(std::str::from_utf8(&piece[..read]).unwrap());
    }
    let line = format!("{}\r\n", "x".repeat(70));
    stream.write_all(line.repeat(bytes / line.len()).as_bytes()).await.unwrap();
    (stream, codes(&received).last().unwrap().to_string())
}

#[tokio::test]
async fn mails_that_are_coming_in_share_one_memory_limit() {
    let world = World::with(&["--mail-memory-bytes", "800000"]).await;
    let (one, two) = (world.user().await, world.user().await);
    let (first, second) = (one.inbound().await, two.inbound().await);
    // All mails come from the same address, which can reserve half of the memory.
    let (mut held, code) = begin_mail(&world, &first, " SIZE=300000", 0).await;
    assert_eq!(code, "354");
    // A mail that declares its size is refused before its data, one that does not is refused after it.
    let (_, code) = begin_mail(&world, &second, " SIZE=200000", 0).await;
    assert_eq!(code, "452");
    let (mut late, code) = begin_mail(&world, &second, "", 200_000).await;
    assert_eq!(code, "354");
    late.write_all(b".\r\nQUIT\r\n").await.unwrap();
    let mut received = String::new();
    late.read_to_string(&mut received).await.unwrap();
    assert_eq!(codes(&received), ["452", "221"], "{received}");
    // The memory is released when a mail has been stored.
    held.write_all(b"From: a@b.nl\r\n\r\nHello\r\n.\r\nQUIT\r\n").await.unwrap();
    let mut received = String::new();
    held.read_to_string(&mut received).await.unwrap();
    assert_eq!(codes(&received), ["250", "221"], "{received}");
    world.send("a@b.nl", &[&second], &mail("1@x", "", "Bread", &"x".repeat(200_000))).await.unwrap();
    let received = talk(&world, &["EHLO x", "MAIL FROM:<a@b.nl> SIZE=400001", "QUIT"]).await;
    assert!(received.contains("SIZE 400000"), "{received}");
    assert_eq!(codes(&received), ["220", "250", "552", "221"]);
}

#[tokio::test]
async fn mails_over_grpc_share_the_same_memory_limit() {
    let world = World::with(&["--mail-memory-bytes", "800000"]).await;
    let (one, two) = (world.user().await, world.user().await);
    // An account can reserve half of the memory, and a mail over gRPC first reserves that much.
    let (held, code) = begin_mail(&world, &one.inbound().await, " SIZE=300000", 0).await;
    assert_eq!(code, "354");
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
async fn one_address_cannot_take_every_session() {
    let world = World::new().await;
    // Kept open, so that each holds its session.
    let mut open = Vec::new();
    for number in 1..=33 {
        let mut stream = TcpStream::connect(world.smtp_address).await.unwrap();
        let mut code = [0; 3];
        stream.read_exact(&mut code).await.unwrap();
        let expected = if number <= 32 { b"220" } else { b"421" };
        assert_eq!(&code, expected, "connection {number}");
        open.push(stream);
    }
}

#[tokio::test]
async fn a_mail_that_is_cut_off_is_not_stored() {
    let world = World::new().await;
    let user = world.user().await;
    let inbound = user.inbound().await;
    let mut stream = TcpStream::connect(world.smtp_address).await.unwrap();
    let half =
        format!("HELO x\r\nMAIL FROM:<a@b.nl>\r\nRCPT TO:<{inbound}>\r\nDATA\r\nFrom: a@b.nl\r\n\r\nHal");
    stream.write_all(half.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut received = String::new();
    stream.read_to_string(&mut received).await.unwrap();
    assert_eq!(codes(&received), ["220", "250", "250", "250", "354"]);
    assert_eq!(user.api.get("/v1/tickets").await.at("/meta/total"), 0);
}

#[tokio::test]
async fn a_reply_address_is_enough_to_find_the_ticket() {
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
