//! Reading what a client sends: lines, and the text of a mail. Bounded in length and time.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

use crate::intake::memory::Hold;

/// Bytes of a command.
const MOST_LINE: u64 = 2048;
/// Bytes that are read at once of a mail; a line may be longer.
const CHUNK: u64 = 8192;
/// Bytes by which the memory of a mail grows at least.
pub const STEP: usize = 64 << 10;

/// How long a client may be silent.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    pub command: Duration,
    /// For a piece of a mail, and for a whole one.
    pub piece: Duration,
    pub mail: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            command: Duration::from_mins(1),
            piece: Duration::from_secs(30),
            mail: Duration::from_mins(10),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(String),
    TooLong,
    NotText,
    End,
}

/// The next line, without its end.
pub async fn line<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
    timeouts: Timeouts,
) -> Result<Line, Error> {
    let mut bytes = Vec::new();
    within(timeouts.command, (&mut *stream).take(MOST_LINE).read_until(b'\n', &mut bytes)).await?;
    if bytes.is_empty() {
        return Ok(Line::End);
    }
    if bytes.pop_if(|last| *last == b'\n').is_none() {
        return Ok(Line::TooLong);
    }
    bytes.pop_if(|last| *last == b'\r');
    Ok(String::from_utf8(bytes).map_or(Line::NotText, Line::Text))
}

/// The text of a mail, or why there is none.
#[derive(Debug, PartialEq, Eq)]
pub enum Data {
    Mail(Vec<u8>),
    TooLarge,
    /// Other mails have the memory.
    NoMemory,
}

/// The text of a mail, dots taken out, up to the line that ends it. It has at most `most` bytes, and never more memory
/// than is held for it. What is not kept is read to its end all the same: only then can an answer be heard.
///
/// Only CR LF is an end of line here: a bare one of them is part of the text, so that what ends a mail for the server in
/// front, and only that, ends it here too.
pub async fn data<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
    most: usize,
    timeouts: Timeouts,
    hold: &mut Hold,
) -> Result<Data, Error> {
    within(timeouts.mail, read_data(stream, most, timeouts, hold)).await
}

async fn read_data<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
    most: usize,
    timeouts: Timeouts,
    hold: &mut Hold,
) -> Result<Data, Error> {
    let (mut data, mut read) = (Data::Mail(Vec::new()), 0_usize);
    let mut chunk = Vec::new();
    let (mut begins, mut after_return) = (true, false);
    loop {
        chunk.clear();
        within(timeouts.piece, (&mut *stream).take(CHUNK).read_until(b'\n', &mut chunk)).await?;
        if chunk.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if begins && chunk == b".\r\n" {
            return Ok(data);
        }
        let text = if begins { chunk.strip_prefix(b".").unwrap_or(&chunk) } else { &chunk };
        let refused = match &mut data {
            Data::Mail(mail) => add(mail, text, most, hold),
            Data::TooLarge | Data::NoMemory => None,
        };
        if let Some(refused) = refused {
            data = refused;
            hold.shrink_to(0);
        }
        // Somebody who goes on for ever is not waited for.
        read = read.saturating_add(chunk.len());
        if read > most.saturating_mul(4) {
            return Err(ErrorKind::InvalidData.into());
        }
        begins = chunk.ends_with(b"\r\n") || (after_return && chunk == b"\n");
        after_return = chunk.ends_with(b"\r");
    }
}

/// Adds a piece to a mail, if it is still a mail with it. The memory grows by a part of itself at a time: half of it is
/// never empty.
fn add(mail: &mut Vec<u8>, text: &[u8], most: usize, hold: &mut Hold) -> Option<Data> {
    let needed = mail.len() + text.len();
    if needed > most {
        return Some(Data::TooLarge);
    }
    if needed > mail.capacity() {
        let capacity = (needed + (needed / 8).max(STEP)).min(most);
        if !hold.grow_to(capacity) {
            return Some(Data::NoMemory);
        }
        mail.reserve_exact(capacity - mail.len());
    }
    mail.extend_from_slice(text);
    None
}

async fn within<T>(patience: Duration, reading: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(patience, reading).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::memory::Memory;
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    async fn data_of(sent: &[u8], most: usize, memory: usize) -> Result<Data, ErrorKind> {
        let mut hold = Memory::new(memory).hold([]);
        data(&mut BufReader::new(sent), most, Timeouts::default(), &mut hold)
            .await
            .map_err(|error| error.kind())
    }

    async fn mail_of(sent: &[u8], most: usize) -> Result<Option<Vec<u8>>, ErrorKind> {
        Ok(match data_of(sent, most, usize::MAX).await? {
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
        let memory = Memory::new(usize::MAX);
        let mut hold = memory.hold([]);
        let got = data(&mut BufReader::new(mail.as_slice()), 25 << 20, Timeouts::default(), &mut hold)
            .await
            .unwrap();
        let Data::Mail(got) = got else { panic!("{got:?}") };
        assert!(got.capacity() < mail.len() * 5 / 4, "{}", got.capacity());
        assert_eq!(hold.bytes(), got.capacity());
    }

    #[tokio::test]
    async fn a_mail_without_memory_is_read_to_its_end_and_holds_nothing() {
        let mail = [b"x".repeat(1 << 20).as_slice(), b"\r\n.\r\nQUIT\r\n"].concat();
        let memory = Memory::new(512 << 10);
        let (mut hold, mut stream) = (memory.hold([]), BufReader::new(mail.as_slice()));
        assert_eq!(
            data(&mut stream, 25 << 20, Timeouts::default(), &mut hold).await.unwrap(),
            Data::NoMemory
        );
        assert_eq!(hold.bytes(), 0);
        assert_eq!(line(&mut stream, Timeouts::default()).await.unwrap(), Line::Text("QUIT".into()));
    }

    #[tokio::test]
    async fn a_silent_client_is_not_waited_for() {
        let (mut theirs, ours) = tokio::io::duplex(1 << 10);
        let (mut stream, soon) = (BufReader::new(ours), Duration::from_millis(1));
        let timeouts = Timeouts { command: soon, piece: soon, ..Timeouts::default() };
        theirs.write_all(b"NOO").await.unwrap();
        assert_eq!(line(&mut stream, timeouts).await.unwrap_err().kind(), ErrorKind::TimedOut);
        theirs.write_all(b"a\r\nb").await.unwrap();
        let mut hold = Memory::new(usize::MAX).hold([]);
        let error = data(&mut stream, 1 << 20, timeouts, &mut hold).await.unwrap_err();
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
    async fn too_much_is_read_to_its_end_and_endless_is_not() {
        let long = [b"x".repeat(50).as_slice(), b"\r\n.\r\n"].concat();
        assert_eq!(mail_of(&long, 40).await, Ok(None));
        assert_eq!(mail_of(&b"x".repeat(100_000), 40).await, Err(ErrorKind::InvalidData));
    }

    #[tokio::test]
    async fn a_line_is_text_of_bounded_length() {
        let mut stream = BufReader::new(&b"NOOP\r\nA\n\xff\r\n"[..]);
        assert_eq!(line(&mut stream, Timeouts::default()).await.unwrap(), Line::Text("NOOP".into()));
        assert_eq!(line(&mut stream, Timeouts::default()).await.unwrap(), Line::Text("A".into()));
        assert_eq!(line(&mut stream, Timeouts::default()).await.unwrap(), Line::NotText);
        assert_eq!(line(&mut stream, Timeouts::default()).await.unwrap(), Line::End);
        let long = b"x".repeat(5000);
        assert_eq!(
            line(&mut BufReader::new(long.as_slice()), Timeouts::default()).await.unwrap(),
            Line::TooLong
        );
    }

    /// What a client sends for a mail: dots doubled, the end added.
    fn sent(mail: &[u8]) -> Vec<u8> {
        let mut sent = Vec::new();
        let (mut begins, mut last) = (true, 0);
        for byte in mail {
            if begins && *byte == b'.' {
                sent.push(b'.');
            }
            sent.push(*byte);
            begins = last == b'\r' && *byte == b'\n';
            last = *byte;
        }
        if !begins {
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
