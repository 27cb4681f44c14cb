//! Comments of the proto files as Markdown.

/// A comment as Markdown whose paragraphs are one line each: where a comment was wrapped means nothing to a reader.
pub(super) fn flowing(comment: &str) -> String {
    comment
        .split("\n\n")
        .map(|paragraph| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n\n")
}
