//! Whether a person or a program wrote a message. Programs that answer messages must not answer programs: two of them
//! would write to each other without end. Mail that comes in, tickets and messages all need this, so it is below them.

/// Whether a person wrote a message. Stored as text in `message.automatic`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Automatic {
    #[default]
    No,
    /// It came through a mailing list, so a person may have written it.
    List,
    /// An automatic reply, a bounce, or a flow.
    Program,
}

impl Automatic {
    pub fn name(self) -> &'static str {
        match self {
            Self::No => "",
            Self::List => "list",
            Self::Program => "program",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::No, Self::List, Self::Program].into_iter().find(|automatic| automatic.name() == name)
    }

    /// Whether programs must not answer it.
    pub fn is_automatic(self) -> bool {
        self != Self::No
    }
}
