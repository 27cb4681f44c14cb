//! Runs the service.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    chassis_service::process::main::<svc_support::Support>()
}
