//! The budget of rendering one step. Everything that a template makes, copies or reads is charged here before or as it
//! happens, and no operation makes more than a fixed multiple of what it was charged for. So memory and time are bounded,
//! whatever the template says.

use std::cell::Cell;

use minijinja::Value;
use minijinja::value::ValueKind;

/// Statements and expressions that are evaluated.
const MAX_OPERATIONS: usize = 100_000;
/// Bytes that are made, copied or read.
const MAX_WORK: usize = 32 << 20;
/// Bytes of one value, with everything in it.
pub(super) const MAX_VALUE: usize = 1 << 20;
/// Bytes of one text.
pub(super) const MAX_TEXT: usize = 256 << 10;
/// Bytes of all rendered values of a step.
const MAX_OUTPUT: usize = 1 << 20;
/// The bytes that a value counts for besides its text.
pub(super) const ELEMENT: usize = 32;

#[derive(Default)]
pub(super) struct Budget {
    operations: Cell<usize>,
    work: Cell<usize>,
    output: Cell<usize>,
}

impl Budget {
    /// Charges one operation.
    pub(super) fn operation(&self) -> Result<(), String> {
        let error = || format!("it takes more than {MAX_OPERATIONS} operations");
        charge(&self.operations, 1, MAX_OPERATIONS).ok_or_else(error)
    }

    /// Charges work on that many bytes.
    pub(super) fn work(&self, bytes: usize) -> Result<(), String> {
        let error = || format!("it goes through more than {} MiB", MAX_WORK >> 20);
        charge(&self.work, bytes, MAX_WORK).ok_or_else(error)
    }

    /// Charges a rendered value, which is stored with the step.
    pub(super) fn output(&self, bytes: usize) -> Result<(), String> {
        let error = || format!("a step renders at most {} KiB", MAX_OUTPUT >> 10);
        charge(&self.output, bytes, MAX_OUTPUT).ok_or_else(error)
    }

    /// Charges a value that is about to be made.
    pub(super) fn value(&self, bytes: usize) -> Result<(), String> {
        if bytes > MAX_VALUE {
            return Err(too_large());
        }
        self.work(bytes)
    }

    /// Charges reading a value with everything in it; returns its size.
    pub(super) fn measure(&self, value: &Value) -> Result<usize, String> {
        let left = weigh(value, MAX_VALUE).ok_or_else(too_large)?;
        self.work(MAX_VALUE - left)?;
        Ok(MAX_VALUE - left)
    }
}

fn too_large() -> String {
    format!("a value of more than {} KiB cannot be used here", MAX_VALUE >> 10)
}

fn charge(used: &Cell<usize>, amount: usize, max: usize) -> Option<()> {
    let total = used.get().checked_add(amount).filter(|total| *total <= max);
    used.set(total.unwrap_or(max));
    total.map(|_| ())
}

/// What is left of `left` bytes after a value; `None` as soon as nothing is, so a huge value is not walked to its end.
/// Recurses as deep as the value, whose depth the parsers of JSON and of templates bound.
fn weigh(value: &Value, left: usize) -> Option<usize> {
    let mut left = left.checked_sub(ELEMENT)?;
    match value.kind() {
        ValueKind::String => left = left.checked_sub(value.as_str().map_or(0, str::len))?,
        ValueKind::Bytes => left = left.checked_sub(value.as_bytes().map_or(0, <[u8]>::len))?,
        ValueKind::Seq | ValueKind::Iterable => {
            for item in value.try_iter().ok()? {
                left = weigh(&item, left)?;
            }
        }
        ValueKind::Map => {
            for key in value.try_iter().ok()? {
                left = weigh(&key, left)?;
                left = weigh(&value.get_item(&key).unwrap_or_default(), left)?;
            }
        }
        _ => {}
    }
    Some(left)
}
