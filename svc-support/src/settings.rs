//! What an operator says about mail that comes in.

use std::net::SocketAddr;

use chassis::Runtime;
use clap::{Args, FromArgMatches};

#[derive(Args, Clone, Debug)]
// The mesh settings have the same name, and clap makes a group of each.
#[group(id = "SupportSettings")]
pub struct Settings {
    /// Address to take mail in on, by SMTP or LMTP without TLS: for a mail server in front, not for the open network;
    /// unset: no mail is taken in
    #[arg(long, env = "MAIL_LISTEN", global = true)]
    pub mail_listen: Option<SocketAddr>,

    /// Domain of the addresses that mail is taken in for, for example mail.example.com; empty: no such addresses are made
    #[arg(long, env = "MAIL_DOMAIN", default_value = "", global = true)]
    pub mail_domain: String,

    /// Bytes of memory that mails take while they come in, all together; an account and an address that mail comes from
    /// have half of it at most, and so has a mail. Beyond it, mail is to come again later
    #[arg(long, env = "MAIL_MEMORY_BYTES", default_value_t = 128 << 20, global = true)]
    pub mail_memory_bytes: usize,

    /// DNS server that domains are verified with, as address:port; unset: those of the machine
    #[arg(long, env = "DNS_SERVER", global = true)]
    pub dns_server: Option<SocketAddr>,
}

impl Settings {
    /// Those that the process was started with.
    #[expect(clippy::expect_used, reason = "`Service::options` adds them, and clap has checked their values")]
    pub fn of(runtime: &Runtime) -> Self {
        Self::from_arg_matches(&runtime.options).expect("settings that are on the command line")
    }
}
