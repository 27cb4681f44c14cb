//! The status of a document, which the contract calls `payment_status`: one that billing sets, or any text of a caller.

/// Stored as text. A text that is none of the others is a caller's own: the contract lets callers set any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Draft,
    Open,
    PartiallyPaid,
    Paid,
    PartiallyCredited,
    Credited,
    /// Of a quote.
    Accepted,
    /// Of a workorder. Only callers set it, but it means that the work is done.
    Completed,
    /// A text without a meaning to billing.
    Custom(String),
}

impl Status {
    /// As it is stored and shown.
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Draft => "draft",
            Self::Open => "open",
            Self::PartiallyPaid => "partially_paid",
            Self::Paid => "paid",
            Self::PartiallyCredited => "partially_credited",
            Self::Credited => "credited",
            Self::Accepted => "accepted",
            Self::Completed => "completed",
            Self::Custom(text) => text,
        }
    }

    /// Whether it is a caller's own.
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self, Self::Custom(_))
    }

    /// The inverse of [`Status::as_str`]. Every text is a status, so this does not fail.
    pub(crate) fn from_text(text: &str) -> Self {
        let known = [
            Self::Draft,
            Self::Open,
            Self::PartiallyPaid,
            Self::Paid,
            Self::PartiallyCredited,
            Self::Credited,
            Self::Accepted,
            Self::Completed,
        ];
        known
            .into_iter()
            .find(|status| status.as_str() == text)
            .unwrap_or_else(|| Self::Custom(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_read_as_it_was_written() {
        for text in ["draft", "partially_credited", "completed", "Paid", "invoiced", ""] {
            assert_eq!(Status::from_text(text).as_str(), text);
        }
        assert_eq!(Status::from_text("paid"), Status::Paid);
        assert_eq!(Status::from_text("Paid"), Status::Custom("Paid".to_owned()));
    }
}
