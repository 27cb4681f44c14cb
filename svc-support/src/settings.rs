//! The options of the service: where mail comes in, and how domains are verified.

use std::net::SocketAddr;

use chassis_service::Runtime;
use clap::{Args, FromArgMatches};

#[derive(Args, Clone, Debug)]
// The mesh settings have the same name, and clap makes a group of each.
#[group(id = "SupportSettings")]
pub(crate) struct Settings {
    /// Address to receive mail at, over SMTP or LMTP without TLS: for a mail server in front, not for the open network;
    /// unset: no mail is received
    #[arg(long, env = "MAIL_LISTEN", global = true)]
    pub mail_listen: Option<SocketAddr>,

    /// Domain of the addresses that receive mail, for example mail.example.com; empty: there are no such addresses
    #[arg(long, env = "MAIL_DOMAIN", default_value = "", global = true)]
    pub mail_domain: String,

    /// Bytes of memory for all mails that are coming in; one account, one peer address and one mail can have half of it
    /// at most. Above the limit, mail is deferred
    #[arg(long, env = "MAIL_MEMORY_BYTES", default_value_t = 128 << 20, global = true)]
    pub mail_memory_bytes: usize,

    /// DNS server that domains are verified with, as address:port; unset: the servers that the machine uses
    #[arg(long, env = "DNS_SERVER", global = true)]
    pub dns_server: Option<SocketAddr>,
}

impl Settings {
    /// The settings that the process was started with.
    #[expect(clippy::expect_used, reason = "`Service::options` adds them, and clap has checked their values")]
    pub(crate) fn of(runtime: &Runtime) -> Self {
        Self::from_arg_matches(&runtime.options).expect("settings that are on the command line")
    }
}
