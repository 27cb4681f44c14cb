//! Reading what a client sends: lines, and the text of a mail. Bounded in length and time.

use std::io::{Error, ErrorKind};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};

/// Bytes of a command.
const MOST_LINE: u64 = 2048;
/// Bytes that are read at once of a mail; a line may be longer.
const CHUNK: u64 = 8192;
/// For each command, each piece of a mail, and a whole mail.
const PATIENCE: Duration = Duration::from_mins(2);
const PATIENCE_WITH_A_MAIL: Duration = Duration::from_mins(10);

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(String),
    TooLong,
    NotText,
    End,
}

/// The next line, without its end.
pub async fn line<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> Result<Line, Error> {
    let mut bytes = Vec::new();
    within(PATIENCE, (&mut *stream).take(MOST_LINE).read_until(b'\n', &mut bytes)).await?;
    if bytes.is_empty() {
        return Ok(Line::End);
    }
    if bytes.pop_if(|last| *last == b'\n').is_none() {
        return Ok(Line::TooLong);
    }
    bytes.pop_if(|last| *last == b'\r');
    Ok(String::from_utf8(bytes).map_or(Line::NotText, Line::Text))
}

/// The text of a mail, dots taken out, up to the line that ends it; `None` when it has more than `most` bytes.
///
/// Only CR LF is an end of line here: a bare one of them is part of the text, so that what ends a mail for the server in
/// front, and only that, ends it here too.
pub async fn data<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
    most: usize,
) -> Result<Option<Vec<u8>>, Error> {
    within(PATIENCE_WITH_A_MAIL, read_data(stream, most)).await
}

async fn read_data<S: AsyncRead + Unpin>(
    stream: &mut BufReader<S>,
    most: usize,
) -> Result<Option<Vec<u8>>, Error> {
    let (mut mail, mut fits, mut read) = (Vec::new(), true, 0_usize);
    let mut chunk = Vec::new();
    let (mut begins, mut after_return) = (true, false);
    loop {
        chunk.clear();
        within(PATIENCE, (&mut *stream).take(CHUNK).read_until(b'\n', &mut chunk)).await?;
        if chunk.is_empty() {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if begins && chunk == b".\r\n" {
            return Ok(fits.then_some(mail));
        }
        let text = if begins { chunk.strip_prefix(b".").unwrap_or(&chunk) } else { &chunk };
        fits &= mail.len() + text.len() <= most;
        if fits {
            mail.extend_from_slice(text);
        } else {
            mail = Vec::new();
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

async fn within<T>(patience: Duration, reading: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    tokio::time::timeout(patience, reading).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    async fn mail_of(sent: &[u8], most: usize) -> Result<Option<Vec<u8>>, ErrorKind> {
        data(&mut BufReader::new(sent), most).await.map_err(|error| error.kind())
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
        assert_eq!(line(&mut stream).await.unwrap(), Line::Text("NOOP".into()));
        assert_eq!(line(&mut stream).await.unwrap(), Line::Text("A".into()));
        assert_eq!(line(&mut stream).await.unwrap(), Line::NotText);
        assert_eq!(line(&mut stream).await.unwrap(), Line::End);
        let long = b"x".repeat(5000);
        assert_eq!(line(&mut BufReader::new(long.as_slice())).await.unwrap(), Line::TooLong);
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
