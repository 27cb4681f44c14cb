//! The address of a service, as written in a setting.

/// A service and its address; several replicas have their addresses separated by `|`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerAddress {
    pub name: String,
    pub url: String,
}

impl std::str::FromStr for PeerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, url) =
            text.split_once('=').ok_or_else(|| format!("`{text}` must have the form name=url"))?;
        Ok(Self { name: name.trim().to_owned(), url: url.trim().to_owned() })
    }
}
