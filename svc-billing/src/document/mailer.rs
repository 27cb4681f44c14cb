//! The mail with which a document is sent: a message of the sender, a link to the document's page, and a reference to the
//! PDF, which is attached when the mail is delivered.

use std::fmt;

use chassis_base::html::escaped;
use uuid::Uuid;

use super::{Kind, Record};

/// How a queued mail names the PDF of a document: its kind and id.
pub(crate) struct PdfReference {
    pub kind: Kind,
    pub id: Uuid,
}

impl PdfReference {
    /// The inverse of its `Display`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, id) = text.split_once(':')?;
        Some(Self { kind: Kind::from_name(kind)?, id: chassis_base::id::parse(id)? })
    }
}

impl From<&Record> for PdfReference {
    fn from(record: &Record) -> Self {
        Self { kind: record.kind, id: record.id }
    }
}

impl fmt::Display for PdfReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.id)
    }
}

/// A message as its sender wrote it, with a link to the document's page below it.
pub(crate) struct DocumentMail<'a> {
    pub message: &'a str,
    /// The text of the link.
    pub link_text: &'a str,
    pub page_url: &'a str,
}

impl DocumentMail<'_> {
    pub(crate) fn text(&self) -> String {
        let Self { message, link_text, page_url } = self;
        format!("{message}\n\n{link_text}: {page_url}\n")
    }

    /// Blank lines of the message separate paragraphs. The message is escaped, so nothing in it is read as markup.
    pub(crate) fn html(&self) -> String {
        let message = escaped(&self.message.replace("\r\n", "\n"));
        let paragraphs = message.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
        let mut body = String::new();
        for paragraph in paragraphs {
            let lines = paragraph.trim().replace('\n', "<br>");
            body.extend(["<p style=\"margin:0 0 1em\">", &lines, "</p>"]);
        }
        let (link_text, page_url) = (escaped(self.link_text), escaped(self.page_url));
        format!(
            "<!doctype html><html><body style=\"margin:0;padding:24px;font:16px/1.5 -apple-system,'Segoe UI',\
             Roboto,Helvetica,Arial,sans-serif;color:#1d2429\"><div style=\"max-width:36em\">{body}\
             <p style=\"margin:2em 0 0\"><a href=\"{page_url}\" style=\"color:#1f4e5f\">{link_text}</a></p></div></body></html>"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_text_and_never_markup() {
        let mail = DocumentMail {
            message: "Hi <b>\"you\"</b>\r\n\r\n1\n2",
            link_text: "View",
            page_url: "https://x.example/d",
        };
        let html = mail.html();
        assert!(html.contains("Hi &lt;b&gt;&quot;you&quot;&lt;/b&gt;</p><p"), "{html}");
        assert!(html.contains("1<br>2") && html.contains("href=\"https://x.example/d\""), "{html}");
        assert!(mail.text().ends_with("1\n2\n\nView: https://x.example/d\n"));
    }
}
