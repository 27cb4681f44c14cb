//! The words of a mail that brings a document.

use chassis_base::html::escaped;

/// A message as it was written, with a way to the document's page below it.
pub struct Letter<'a> {
    pub message: &'a str,
    /// What the way to the page is called.
    pub online: &'a str,
    pub page: &'a str,
}

impl Letter<'_> {
    pub fn text(&self) -> String {
        let Self { message, online, page } = self;
        format!("{message}\n\n{online}: {page}\n")
    }

    /// Paragraphs where the message has blank lines. Nothing of the message is taken for markup.
    pub fn html(&self) -> String {
        let message = escaped(&self.message.replace("\r\n", "\n"));
        let paragraphs = message.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
        let mut body = String::new();
        for paragraph in paragraphs {
            let lines = paragraph.trim().replace('\n', "<br>");
            body.extend(["<p style=\"margin:0 0 1em\">", &lines, "</p>"]);
        }
        let (online, page) = (escaped(self.online), escaped(self.page));
        format!(
            "<!doctype html><html><body style=\"margin:0;padding:24px;font:16px/1.5 -apple-system,'Segoe UI',\
             Roboto,Helvetica,Arial,sans-serif;color:#1d2429\"><div style=\"max-width:36em\">{body}\
             <p style=\"margin:2em 0 0\"><a href=\"{page}\" style=\"color:#1f4e5f\">{online}</a></p></div></body></html>"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_text_and_never_markup() {
        let letter =
            Letter { message: "Hi <b>\"you\"</b>\r\n\r\n1\n2", online: "View", page: "https://x.example/d" };
        let html = letter.html();
        assert!(html.contains("Hi &lt;b&gt;&quot;you&quot;&lt;/b&gt;</p><p"), "{html}");
        assert!(html.contains("1<br>2") && html.contains("href=\"https://x.example/d\""), "{html}");
        assert!(letter.text().ends_with("1\n2\n\nView: https://x.example/d\n"));
    }
}
