//! The settings of mail.

use std::path::PathBuf;

use clap::Args;

/// Where mail is sent, and its default sender.
#[derive(Args, Clone, Debug)]
pub struct MailSettings {
    /// SMTP server for outgoing mail, for example smtps://user:password@host:465 (TLS) or
    /// smtp://user:password@host:587?tls=required (STARTTLS); empty: mail stays in the queue, in development it is
    /// written to files
    #[arg(long, env = "SMTP_URL", default_value = "", hide_env_values = true, global = true)]
    pub smtp_url: String,

    /// Folder for mail in development if no server is set
    #[arg(long, env = "MAIL_DIR", default_value = ".local/mail", global = true)]
    pub mail_dir: PathBuf,

    /// Sender address for mail whose own domain has no signing key
    #[arg(long, env = "MAIL_FROM", default_value = "no-reply@localhost", global = true)]
    pub mail_from: String,
}
