//! The operator's settings for the sandbox. A file of its own, because every part with flags has one.

use clap::Args;

#[derive(Args, Clone, Copy, Debug)]
#[group(id = "SandboxSettings")]
pub(crate) struct Settings {
    /// Whether payments may go to the sandbox in production too while no provider is set up, for accounts that have
    /// switched it on (sandbox_payments of their billing settings): for rehearsals only, as anyone can say there that
    /// they paid
    #[arg(long, env = "SANDBOX_IN_PRODUCTION", default_value_t = false, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true, global = true)]
    pub sandbox_in_production: bool,
}
