//! The build script of the seven programs: how they are linked.
//!
//! A program that can be loaded at any address has a relocation for each pointer in its constant data. The usual table has 24
//! bytes for each, and what the loader has read of it counts as memory of the process for as long as it lives: 1.6 MB. Packed
//! (RELR) it has 26 kB. Loaders of the GNU C library know that since 2.36 (2022; Debian 12); where an older one would run the
//! program, the usual table stays.

use std::env;
use std::process::Command;

/// The first version of the GNU C library that reads packed relocations.
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=Cargo.toml");
    let target = ["CARGO_CFG_TARGET_OS", "CARGO_CFG_TARGET_ENV", "CARGO_CFG_TARGET_ARCH"].map(env::var);
    // The linkers of other processors warn that they do not know the option.
    let is_known = target.iter().flatten().eq(["linux", "gnu", "x86_64"]);
    if is_known && glibc().is_some_and(|version| version >= FIRST) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The version on this machine: programs run where they are built, or in an image of the same Debian.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let (major, minor) = str::from_utf8(&said.stdout).ok()?.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
