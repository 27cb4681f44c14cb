//! The fields that a request changes.

use proto::api::Fault;
use proto::{At, Faults};

/// The fields that a request changes.
#[derive(Clone, Copy, Debug)]
pub enum UpdateMask<'a> {
    /// All fields: a create, or an update that replaces the whole record.
    All,
    /// The fields of a field mask.
    Only(&'a [String]),
}

impl UpdateMask<'_> {
    pub fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(paths) => paths.iter().any(|path| path == name),
        }
    }

    /// Copies the field `name` into `to` if the mask contains it.
    pub fn put<T: Clone>(&self, name: &str, from: &T, to: &mut T) {
        if self.has(name) {
            to.clone_from(from);
        }
    }

    /// Adds a fault for each path that is not a field. `what` names the record in the fault, for example `client`.
    pub fn check(&self, is_field: impl Fn(&str) -> bool, what: &str, faults: &mut Faults) {
        let Self::Only(paths) = self else { return };
        for path in paths.iter().filter(|path| !is_field(path)) {
            let detail = format!("update_mask names `{path}`, which is not a field of a {what}");
            faults.add(&At::ROOT.name("update_mask"), Fault::NotAllowed, detail);
        }
    }
}

impl<'a> From<Option<&'a prost_types::FieldMask>> for UpdateMask<'a> {
    fn from(mask: Option<&'a prost_types::FieldMask>) -> Self {
        mask.map_or(Self::All, |mask| Self::Only(&mask.paths))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_names_its_paths_and_no_mask_names_everything() {
        let paths = ["city".to_owned(), "colour".to_owned()];
        let named = UpdateMask::Only(&paths);
        assert!(named.has("city") && !named.has("name") && UpdateMask::All.has("name"));
        let mut value = 1;
        named.put("name", &2, &mut value);
        assert_eq!(value, 1);
        named.put("city", &2, &mut value);
        assert_eq!(value, 2);
        let mut faults = Faults::default();
        named.check(|name| name == "city", "client", &mut faults);
        UpdateMask::All.check(|_| false, "client", &mut faults);
        assert_eq!(faults.entries().iter().map(|e| e.pointer.as_str()).collect::<Vec<_>>(), ["/update_mask"]);
    }
}
