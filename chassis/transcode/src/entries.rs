//! The records of a response, one by one: the entries of a list, or the only one.

use std::sync::Arc;

use super::plan::{Field, Kind, Shape};
use super::render::{RenderError, Renderer, ResponsePlan, Slot, last_at};
use super::wire::{Reader, Value};

impl ResponsePlan {
    /// Appends the envelope of a response whose `data` is a record or a list of them. `add` is called after each record, with
    /// its place, and may append fields to it. On an error `out` is unchanged.
    pub fn render_records(
        &self,
        wire: &[u8],
        out: &mut Vec<u8>,
        mut add: impl FnMut(usize, &mut Vec<u8>),
    ) -> Result<(), RenderError> {
        let Some((data, record)) = self.record() else { return self.render(wire, out) };
        let start = out.len();
        let mut rendered = || {
            out.extend_from_slice(&data.json_key);
            if data.repeated {
                out.push(b'[');
            }
            for (place, part) in self.records(wire)?.into_iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                Renderer::new(out).message(record, Slot::One(Value::Bytes(part)))?;
                out.pop();
                add(place, out);
                out.push(b'}');
            }
            if data.repeated {
                out.push(b']');
            }
            out.extend_from_slice(b",\"meta\":");
            self.render_meta(wire, out)?;
            out.push(b'}');
            Ok(())
        };
        let result = rendered();
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    /// Appends `meta` of the response.
    pub fn render_meta(&self, wire: &[u8], out: &mut Vec<u8>) -> Result<(), RenderError> {
        let Some(meta) = self.envelope.fields.get(1).filter(|_| self.has_meta) else {
            out.extend_from_slice(b"{}");
            return Ok(());
        };
        let value = last_at(wire, &[meta.number]);
        Renderer::new(out).field(meta, value.map_or(Slot::Absent, Slot::One))
    }

    /// The records of a response in wire form: the entries of a list, or the only one.
    pub(crate) fn records<'a>(&self, wire: &'a [u8]) -> Result<Vec<&'a [u8]>, RenderError> {
        let Some((data, _)) = self.record() else { return Ok(Vec::new()) };
        let (mut records, mut fields) = (Vec::new(), Reader::new(wire));
        while let Some((number, value)) = fields.next()? {
            match value {
                Value::Bytes(record) if number == data.number => records.push(record),
                _ => {}
            }
        }
        if !data.repeated {
            // Services write a record in one part, and the only one that is left out is empty.
            records = vec![records.pop().unwrap_or_default()];
        }
        Ok(records)
    }

    /// The field `data` and the shape of a record in it; `None` if it is no record.
    pub(crate) fn record(&self) -> Option<(&Field, &Arc<Shape>)> {
        let data = self.envelope.fields.first().filter(|_| !self.is_whole)?;
        match &data.kind {
            Kind::Message(shape) => Some((data, shape)),
            _ => None,
        }
    }
}
