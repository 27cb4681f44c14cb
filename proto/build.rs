//! Compiles the contract: generated messages and services, the descriptor set with our options, and the checks that
//! the options imply. Nothing has to be installed for it: protox is a protobuf compiler in Rust.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use prost_reflect::DescriptorPool;

#[path = "build/checks.rs"]
mod checks;
#[path = "build/clients.rs"]
mod clients;
#[path = "build/lists.rs"]
mod lists;
#[expect(unreachable_pub, reason = "the library exports what this file declares")]
#[path = "src/names.rs"]
mod names;
#[path = "build/options.rs"]
mod options;
#[path = "build/services.rs"]
mod services;
#[path = "build/tables.rs"]
mod tables;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut files = Vec::new();
    for root in ["admin", "google"] {
        println!("cargo:rerun-if-changed={root}");
        find_protos(Path::new(root), &mut files)?;
    }
    files.sort();

    let mut compiler = protox::Compiler::new(["."])?;
    compiler.include_source_info(true).include_imports(true).open_files(&files)?;
    // Encoded by protox and not through prost's types, which would drop our options.
    let encoded = compiler.encode_file_descriptor_set();
    fs::write(out.join("descriptor.bin"), &encoded)?;

    let mut config = prost_build::Config::new();
    // What the log keeps says which message it is.
    config.enable_type_names().bytes(["."]).include_file("tree.rs");
    if env::var_os("CARGO_FEATURE_GRPC").is_some() {
        config.service_generator(services::generator());
    }
    config.compile_fds(compiler.file_descriptor_set())?;

    // Reflection needs no comments, and keeps what it is given in memory.
    let mut bare = protox::Compiler::new(["."])?;
    bare.include_imports(true).open_files(&files)?;
    fs::write(out.join("reflection.bin"), bare.encode_file_descriptor_set())?;

    let pool = DescriptorPool::decode(encoded.as_slice())?;
    fs::write(out.join("tables.rs"), tables::generate(&pool)?)?;
    fs::write(out.join("checks.rs"), checks::generate(&pool)?)?;
    fs::write(out.join("lists.rs"), lists::generate(&pool)?)?;
    Ok(())
}

fn find_protos(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find_protos(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            found.push(path);
        }
    }
    Ok(())
}
