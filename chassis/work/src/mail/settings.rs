//! The settings of mail.

use std::path::PathBuf;

use clap::Args;

/// Where mail is sent, and its default sender.
#[derive(Args, Clone, Debug)]
pub struct MailSettings {
    /// Server that mail is sent through, for example smtps://user:password@host:465 (TLS) or
    /// smtp://user:password@host:587?tls=required (STARTTLS); empty: mail waits, in development it goes to files
    #[arg(long, env = "SMTP_URL", default_value = "", hide_env_values = true, global = true)]
    pub smtp_url: String,

    /// Folder for mail while there is no server, in development
    #[arg(long, env = "MAIL_DIR", default_value = ".local/mail", global = true)]
    pub mail_dir: PathBuf,

    /// Address that mail comes from when the sender's own domain has no key to sign with
    #[arg(long, env = "MAIL_FROM", default_value = "no-reply@localhost", global = true)]
    pub mail_from: String,
}
