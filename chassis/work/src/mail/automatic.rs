//! Headers of automatic mail, which a flow or the passing of time causes. They mark it as automatic (RFC 3834), so that
//! no program answers it, and carry the depth of the event chain, so that loops through mail end as well.

use super::stored::{Header, Stored};

/// How many events in a row led to a mail. Senders can forge it, so it may only increase a depth, never lower it.
pub const DEPTH_HEADER: &str = "X-Automation-Depth";
/// Higher values are capped when written and when read.
pub const MAX_DEPTH: u32 = 100;

/// The headers that mark a mail as automatic.
pub(super) fn headers(mail: &Stored, depth: u32) -> Vec<Header> {
    let is_reply = mail.headers.iter().any(|header| header.name == "In-Reply-To");
    let header = |name: &str, value: &str| Header { name: name.to_owned(), value: value.to_owned() };
    let mut headers = vec![
        header("Auto-Submitted", if is_reply { "auto-replied" } else { "auto-generated" }),
        header("X-Auto-Response-Suppress", "All"),
    ];
    if is_reply {
        headers.push(header("Precedence", "auto_reply"));
    }
    if depth > 0 {
        headers.push(header(DEPTH_HEADER, &depth.min(MAX_DEPTH).to_string()));
    }
    headers
}

/// Parses the value of the depth header; 0 if it is invalid.
pub fn read_depth(value: &str) -> u32 {
    value.trim().parse().map_or(0, |depth: u32| depth.min(MAX_DEPTH))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(mail: &Stored, depth: u32) -> Vec<String> {
        headers(mail, depth).into_iter().map(|header| format!("{}: {}", header.name, header.value)).collect()
    }

    #[test]
    fn a_mail_that_nobody_wrote_says_so() {
        assert_eq!(
            marks(&Stored::default(), 0),
            ["Auto-Submitted: auto-generated", "X-Auto-Response-Suppress: All"]
        );
        let to = Header { name: "In-Reply-To".into(), value: "<1@x>".into() };
        let reply = Stored { headers: vec![to], ..Stored::default() };
        let marks = marks(&reply, 3);
        assert_eq!(marks[0], "Auto-Submitted: auto-replied");
        assert_eq!(marks[3], "X-Automation-Depth: 3");
    }

    #[test]
    fn a_depth_that_is_none_is_not_believed() {
        assert_eq!([" 7 ", "", "-1", "x", "4294967296"].map(read_depth), [7, 0, 0, 0, 0]);
        assert_eq!(read_depth("4000000000"), MAX_DEPTH);
    }
}
