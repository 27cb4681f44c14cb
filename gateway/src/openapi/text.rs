//! Comments of the proto files as Markdown.

/// A comment as Markdown whose paragraphs are one line each: where a comment was wrapped means nothing to a reader.
pub(super) fn flowing(comment: &str) -> String {
    comment
        .split("\n\n")
        .map(|paragraph| paragraph.lines().map(str::trim).collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// `rate_limited` as `RateLimited`.
pub(super) fn upper_camel(name: &str) -> String {
    name.split('_')
        .flat_map(|word| {
            let mut chars = word.chars();
            chars.next().map(|c| c.to_ascii_uppercase()).into_iter().chain(chars)
        })
        .collect()
}
