//! The faults that a test can inject into the stand-in's answers. A file of its own, because both the state, which
//! queues them, and the server, which applies them, need the type.

/// What goes wrong with a request. All but `Busy` and `Refusing` carry the request out first, which is the worst case
/// for the caller: the work is done and the answer is lost.
#[derive(Clone, Debug)]
pub enum InjectedFault {
    /// No answer is sent.
    Silent,
    /// The connection is closed instead of an answer.
    Dropped,
    /// Status 429; nothing was done.
    Busy { retry_after: Option<u64> },
    /// A status such as 500 or 503.
    Failing(u16),
    /// Status 200 with a body that is not JSON.
    Garbled,
    /// Status 200 with a body larger than any client should read.
    Huge,
    /// A status such as 422, with an error body in Mollie's form; nothing was done.
    Refusing { status: u16, detail: String, field: Option<String> },
}
