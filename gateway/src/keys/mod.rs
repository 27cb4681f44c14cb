//! API keys: their form, the caller that a key stands for, and authentication. Knows neither HTTP nor what an
//! operation does with the caller.

mod authenticator;
mod caller;
mod format;
mod kept_token;
mod lookups;
pub(crate) mod store;
pub(crate) mod teller;

pub use authenticator::{AuthError, Authenticator};
pub use caller::Caller;
pub use format::{NewKey, PresentedKey, public_id_of};
pub use kept_token::KeptTokens;
