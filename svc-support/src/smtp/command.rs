//! Parses the commands of a client. Pure.

/// A command of SMTP or LMTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// `HELO`, `EHLO` or `LHLO`.
    Hello {
        extended: bool,
        local: bool,
    },
    /// The sender, `""` for a bounce, and the size of the mail if the client has declared it.
    Mail {
        from: String,
        size: Option<u64>,
    },
    Recipient(String),
    Data,
    Reset,
    Noop,
    Verify,
    Quit,
    /// A command with wrong arguments, and what is wrong with them.
    Malformed(&'static str),
    Unrecognised,
}

/// The number of characters of an address, without the angle brackets.
const MAX_ADDRESS: usize = 254;

pub(super) fn parse(line: &str) -> Command {
    let line = line.trim_end();
    let (verb, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let rest = rest.trim();
    match verb.to_ascii_uppercase().as_str() {
        "HELO" => Command::Hello { extended: false, local: false },
        "EHLO" => Command::Hello { extended: true, local: false },
        "LHLO" => Command::Hello { extended: true, local: true },
        "MAIL" => mail(rest),
        "RCPT" => match path(rest, "TO:") {
            Some((address, _)) if !address.is_empty() => Command::Recipient(address),
            _ => Command::Malformed("expected RCPT TO:<address>"),
        },
        "DATA" if rest.is_empty() => Command::Data,
        "DATA" => Command::Malformed("DATA has no parameters"),
        "RSET" => Command::Reset,
        "NOOP" | "HELP" => Command::Noop,
        "VRFY" | "EXPN" => Command::Verify,
        "QUIT" => Command::Quit,
        _ => Command::Unrecognised,
    }
}

fn mail(rest: &str) -> Command {
    let Some((from, parameters)) = path(rest, "FROM:") else {
        return Command::Malformed("expected MAIL FROM:<address>");
    };
    let mut size = None;
    for parameter in parameters.split_whitespace() {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match name.to_ascii_uppercase().as_str() {
            "SIZE" => match value.parse() {
                Ok(bytes) => size = Some(bytes),
                Err(_) => return Command::Malformed("SIZE must be a number"),
            },
            "BODY" | "SMTPUTF8" | "RET" | "ENVID" | "AUTH" => {}
            _ => return Command::Malformed("unsupported parameter"),
        }
    }
    Command::Mail { from, size }
}

/// The address after a keyword, and the text after the address.
fn path<'a>(text: &'a str, keyword: &str) -> Option<(String, &'a str)> {
    let rest = text
        .get(..keyword.len())
        .filter(|start| start.eq_ignore_ascii_case(keyword))
        .map(|_| &text[keyword.len()..])?;
    let (inside, after) = rest.trim_start().strip_prefix('<')?.split_once('>')?;
    // A source route in front of the address is ignored, as RFC 5321 says.
    let address = inside.rsplit_once(':').map_or(inside, |(_, address)| address).trim();
    let is_plain =
        address.len() <= MAX_ADDRESS && !address.contains(|c: char| c.is_control() || c.is_whitespace());
    is_plain.then(|| (address.to_owned(), after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn usual_commands_are_parsed() {
        assert_eq!(parse("ehlo a.example\r"), Command::Hello { extended: true, local: false });
        assert_eq!(parse("LHLO a"), Command::Hello { extended: true, local: true });
        let mail = |from: &str, size| Command::Mail { from: from.into(), size };
        assert_eq!(parse("MAIL FROM:<>"), mail("", None));
        assert_eq!(parse("mail from: <a@b.nl> SIZE=12 BODY=8BITMIME"), mail("a@b.nl", Some(12)));
        assert_eq!(parse("RCPT TO:<@x,@y:a@b.nl> NOTIFY=NEVER"), Command::Recipient("a@b.nl".into()));
        assert_eq!(parse("DATA"), Command::Data);
    }

    #[test]
    fn other_lines_are_malformed_or_unrecognised() {
        for line in
            ["MAIL", "MAIL TO:<a@b.nl>", "MAIL FROM:a@b.nl", "RCPT TO:<>", "RCPT TO:<a b@c.nl>", "DATA x"]
        {
            assert!(matches!(parse(line), Command::Malformed(_)), "{line}");
        }
        assert!(matches!(parse("MAIL FROM:<a@b.nl> SIZE=x"), Command::Malformed(_)));
        assert!(matches!(parse(&format!("RCPT TO:<{}@b.nl>", "a".repeat(300))), Command::Malformed(_)));
        for line in ["", "GET / HTTP/1.1", "é", "STARTTLS"] {
            assert_eq!(parse(line), Command::Unrecognised, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_some_command(line in any::<String>(), verb in "(MAIL FROM:|RCPT TO:|mail|DATA )?") {
            parse(&format!("{verb}{line}"));
        }
    }
}
