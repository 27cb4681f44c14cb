//! Reads what a client sends: command lines, and the data of a mail. Limited in length and time.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use crate::intake::memory::Reservation;

/// The length of a command line in bytes.
const MAX_LINE: u64 = 2048;
/// The number of bytes of a mail that are read at a time; a line may be longer.
const CHUNK: u64 = 8192;
/// The number of bytes by which the memory of a mail grows at least.
pub(super) const MIN_GROWTH: usize = 64 << 10;

/// How long a client may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timeouts {
    pub command: Duration,
    /// The time for a chunk of a mail.
    pub chunk: Duration,
    /// The time for a whole mail.
    pub mail: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            command: Duration::from_mins(1),
            chunk: Duration::from_secs(30),
            mail: Duration::from_mins(10),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(String),
    TooLong,
    NotText,
    End,
}

/// Reads the next line, without its end.
pub(super) async fn read_line<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
    timeouts: Timeouts,
) -> Result<Line, Error> {
    let mut bytes = Vec::new();
    with_timeout(timeouts.command, (&mut *stream).take(MAX_LINE).read_until(b'\n', &mut bytes)).await?;
    if bytes.is_empty() {
        return Ok(Line::End);
    }
    if bytes.pop_if(|last| *last == b'\n').is_none() {
        return Ok(Line::TooLong);
    }
    bytes.pop_if(|last| *last == b'\r');
    Ok(String::from_utf8(bytes).map_or(Line::NotText, Line::Text))
}

/// The data of a mail, or why it was not kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Data {
    Mail(Vec<u8>),
    TooLarge,
    /// Other mails hold the memory.
    NoMemory,
}

/// Reads the data of a mail up to the line that ends it, and removes the dots that the client has added to lines. A mail
/// has at most `max` bytes, and never more memory than is reserved for it. A mail that is not kept is still read to its
/// end, because the client reads the reply only then.
///
/// Only CR LF ends a line. A bare CR or LF is part of the text: if it ended a line here and not in the mail server in
/// front, one mail could smuggle in another (SMTP smuggling).
pub(super) async fn read_data<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
    max: usize,
    timeouts: Timeouts,
    reservation: &mut Reservation,
) -> Result<Data, Error> {
    with_timeout(timeouts.mail, read_chunks(stream, max, timeouts, reservation)).await
}

async fn read_chunks<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
    max: usize,
    timeouts: Timeouts,
    reservation: &mut Reservation,
) -> Result<Data, Error> {
    let mut data = Data::Mail(Vec::new());
    let mut read = 0_usize;
    let mut chunk = Vec::new();
    let mut at_line_start = true;
    let mut after_return = false;
    loop {
        chunk.clear();
        with_timeout(timeouts.chunk, (&mut *stream).take(CHUNK).read_until(b'\n', &mut chunk)).await?;
        if chunk.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if at_line_start && chunk == b".\r\n" {
            return Ok(data);
        }
        let text = if at_line_start { chunk.strip_prefix(b".").unwrap_or(&chunk) } else { &chunk };
        let refused = match &mut data {
            Data::Mail(mail) => append(mail, text, max, reservation),
            Data::TooLarge | Data::NoMemory => None,
        };
        if let Some(refused) = refused {
            data = refused;
            reservation.shrink_to(0);
        }
        // A client that sends without end is disconnected.
        read = read.saturating_add(chunk.len());
        if read > max.saturating_mul(4) {
            return Err(ErrorKind::InvalidData.into());
        }
        at_line_start = chunk.ends_with(b"\r\n") || (after_return && chunk == b"\n");
        after_return = chunk.ends_with(b"\r");
    }
}

/// Appends a chunk to a mail. Returns why the mail is not kept, if it exceeds a limit. The buffer grows by an eighth of
/// its size instead of doubling, so that little of the reserved memory is unused.
fn append(mail: &mut Vec<u8>, text: &[u8], max: usize, reservation: &mut Reservation) -> Option<Data> {
    let needed = mail.len() + text.len();
    if needed > max {
        return Some(Data::TooLarge);
    }
    if needed > mail.capacity() {
        let capacity = (needed + (needed / 8).max(MIN_GROWTH)).min(max);
        if !reservation.grow_to(capacity) {
            return Some(Data::NoMemory);
        }
        mail.reserve_exact(capacity - mail.len());
    }
    mail.extend_from_slice(text);
    None
}

async fn with_timeout<T>(
    timeout: Duration,
    reading: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    tokio::time::timeout(timeout, reading).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::memory::MailMemory;
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    async fn data_of(sent: &[u8], max: usize, memory: usize) -> Result<Data, ErrorKind> {
        let mut reservation = MailMemory::new(memory).reservation([]);
        read_data(&mut BufReader::new(sent), max, Timeouts::default(), &mut reservation)
            .await
            .map_err(|error| error.kind())
    }

    async fn mail_of(sent: &[u8], max: usize) -> Result<Option<Vec<u8>>, ErrorKind> {
        Ok(match data_of(sent, max, usize::MAX).await? {
            Data::Mail(mail) => Some(mail),
            other => {
                assert_eq!(other, Data::TooLarge);
                None
            }
        })
    }

    #[tokio::test]
    async fn a_mail_takes_little_more_memory_than_it_has_bytes() {
        let mail = [b"x".repeat(1 << 20).as_slice(), b"\r\n.\r\n"].concat();
        let memory = MailMemory::new(usize::MAX);
        let mut reservation = memory.reservation([]);
        let got =
            read_data(&mut BufReader::new(mail.as_slice()), 25 << 20, Timeouts::default(), &mut reservation)
                .await
                .unwrap();
        let Data::Mail(got) = got else { panic!("{got:?}") };
        assert!(got.capacity() < mail.len() * 5 / 4, "{}", got.capacity());
        assert_eq!(reservation.bytes(), got.capacity());
    }

    #[tokio::test]
    async fn a_mail_without_memory_is_read_to_its_end_and_reserves_nothing() {
        let mail = [b"x".repeat(1 << 20).as_slice(), b"\r\n.\r\nQUIT\r\n"].concat();
        let memory = MailMemory::new(512 << 10);
        let (mut reservation, mut stream) = (memory.reservation([]), BufReader::new(mail.as_slice()));
        assert_eq!(
            read_data(&mut stream, 25 << 20, Timeouts::default(), &mut reservation).await.unwrap(),
            Data::NoMemory
        );
        assert_eq!(reservation.bytes(), 0);
        assert_eq!(read_line(&mut stream, Timeouts::default()).await.unwrap(), Line::Text("QUIT".into()));
    }

    #[tokio::test]
    async fn a_silent_client_times_out() {
        let (mut theirs, ours) = tokio::io::duplex(1 << 10);
        let (mut stream, soon) = (BufReader::new(ours), Duration::from_millis(1));
        let timeouts = Timeouts { command: soon, chunk: soon, ..Timeouts::default() };
        theirs.write_all(b"NOO").await.unwrap();
        assert_eq!(read_line(&mut stream, timeouts).await.unwrap_err().kind(), ErrorKind::TimedOut);
        theirs.write_all(b"a\r\nb").await.unwrap();
        let mut reservation = MailMemory::new(usize::MAX).reservation([]);
        let error = read_data(&mut stream, 1 << 20, timeouts, &mut reservation).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_mail_ends_with_a_dot_on_a_line_of_its_own() {
        assert_eq!(mail_of(b"a\r\n..b\r\n.\r\nQUIT", 99).await, Ok(Some(b"a\r\n.b\r\n".to_vec())));
        assert_eq!(mail_of(b".\r\n", 99).await, Ok(Some(Vec::new())));
        for other in [&b"a\n.\n\r\n.\r\n"[..], b"a\n.\r\n.\r\n", b"a\r.\r\n\r\n.\r\n", b"a\r\n.\r\n"] {
            let whole = other.strip_suffix(b".\r\n").unwrap();
            assert_eq!(mail_of(other, 99).await, Ok(Some(whole.to_vec())), "{other:?}");
        }
        assert_eq!(mail_of(b"a\r\n.", 99).await, Err(ErrorKind::UnexpectedEof));
    }

    #[tokio::test]
    async fn a_mail_that_is_too_large_is_read_to_its_end_and_an_endless_one_is_not() {
        let long = [b"x".repeat(50).as_slice(), b"\r\n.\r\n"].concat();
        assert_eq!(mail_of(&long, 40).await, Ok(None));
        assert_eq!(mail_of(&b"x".repeat(100_000), 40).await, Err(ErrorKind::InvalidData));
    }

    #[tokio::test]
    async fn a_line_is_text_of_bounded_length() {
        let mut stream = BufReader::new(&b"NOOP\r\nA\n\xff\r\n"[..]);
        assert_eq!(read_line(&mut stream, Timeouts::default()).await.unwrap(), Line::Text("NOOP".into()));
        assert_eq!(read_line(&mut stream, Timeouts::default()).await.unwrap(), Line::Text("A".into()));
        assert_eq!(read_line(&mut stream, Timeouts::default()).await.unwrap(), Line::NotText);
        assert_eq!(read_line(&mut stream, Timeouts::default()).await.unwrap(), Line::End);
        let long = b"x".repeat(5000);
        assert_eq!(
            read_line(&mut BufReader::new(long.as_slice()), Timeouts::default()).await.unwrap(),
            Line::TooLong
        );
    }

    /// What a client sends for a mail: dots doubled, the end added.
    fn sent(mail: &[u8]) -> Vec<u8> {
        let mut sent = Vec::new();
        let (mut at_line_start, mut last) = (true, 0);
        for byte in mail {
            if at_line_start && *byte == b'.' {
                sent.push(b'.');
            }
            sent.push(*byte);
            at_line_start = last == b'\r' && *byte == b'\n';
            last = *byte;
        }
        if !at_line_start {
            sent.extend(b"\r\n");
        }
        sent.extend(b".\r\n");
        sent
    }

    proptest! {
        #[test]
        fn every_mail_arrives_as_it_was_sent(mail in "([.\r\na]|\r\n|\r\n\\.|x{9000}){0,30}") {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let got = runtime.block_on(mail_of(&sent(mail.as_bytes()), 1 << 20)).unwrap().unwrap();
            let expected = if mail.is_empty() || mail.ends_with("\r\n") { mail } else { mail + "\r\n" };
            prop_assert_eq!(String::from_utf8(got).unwrap(), expected);
        }
    }
}
