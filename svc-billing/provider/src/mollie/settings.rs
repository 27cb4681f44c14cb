//! The operator's settings for Mollie.

use std::fmt;
use std::time::Duration;

use clap::Args;

const API: &str = "https://api.mollie.com/v2";

/// Flags and environment variables, to be flattened into the command line of a process.
#[derive(Args, Clone)]
#[group(id = "MollieSettings")]
pub struct Settings {
    /// API key of a Mollie profile (test_… or live_…); empty: payments go to the sandbox, in production nowhere
    #[arg(long, env = "MOLLIE_API_KEY", default_value = "", hide_env_values = true, global = true)]
    pub mollie_api_key: String,

    /// Address of Mollie's API
    #[arg(long, env = "MOLLIE_API_URL", default_value = API, global = true)]
    pub mollie_api_url: String,

    /// Secrets of Mollie's signed webhooks, comma-separated: all are accepted, so that they can be rotated; empty:
    /// signed webhooks are refused
    #[arg(long, env = "MOLLIE_WEBHOOK_SECRETS", default_value = "", hide_env_values = true, global = true)]
    pub mollie_webhook_secrets: String,

    /// Longest time for one request to Mollie, in milliseconds; what takes longer counts as unanswered
    #[arg(long, env = "MOLLIE_TIMEOUT_MS", default_value_t = 8_000, value_parser = clap::value_parser!(u64).range(1..=60_000), global = true)]
    pub mollie_timeout_ms: u64,
}

impl Settings {
    /// Whether Mollie is configured.
    pub fn is_set(&self) -> bool {
        !self.mollie_api_key.trim().is_empty()
    }

    pub(super) fn timeout(&self) -> Duration {
        Duration::from_millis(self.mollie_timeout_ms)
    }

    pub(super) fn webhook_secrets(&self) -> Vec<String> {
        let secrets = self.mollie_webhook_secrets.split(',').map(str::trim);
        secrets.filter(|secret| !secret.is_empty()).map(str::to_owned).collect()
    }
}

/// Omits the secrets, because settings end up in logs.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("mollie_api_key", &if self.is_set() { "set" } else { "not set" })
            .field("mollie_api_url", &self.mollie_api_url)
            .field("mollie_webhook_secrets", &self.webhook_secrets().len())
            .field("mollie_timeout_ms", &self.mollie_timeout_ms)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;

    fn settings() -> Settings {
        Settings {
            mollie_api_key: "test_secret".to_owned(),
            mollie_api_url: API.to_owned(),
            mollie_webhook_secrets: " new-secret, ,old-secret".to_owned(),
            mollie_timeout_ms: 1,
        }
    }

    #[test]
    fn secrets_are_several_and_never_empty() {
        assert_eq!(settings().webhook_secrets(), ["new-secret", "old-secret"]);
    }

    #[test]
    fn settings_show_no_secrets() {
        let shown = format!("{:?}", settings());
        assert!(shown.contains(API) && !shown.contains("test_"), "{shown}");
        assert!(!shown.contains("new-secret") && !shown.contains("old-secret"), "{shown}");
    }

    #[test]
    fn the_flags_have_defaults() {
        let command = Settings::augment_args(clap::Command::new("any"));
        let matches = command.try_get_matches_from(["any", "--mollie-api-key", "live_x"]).unwrap();
        let read = Settings::from_arg_matches(&matches).unwrap();
        assert!(read.is_set());
        assert_eq!(read.mollie_api_url, API);
        assert!(read.webhook_secrets().is_empty());
    }
}
